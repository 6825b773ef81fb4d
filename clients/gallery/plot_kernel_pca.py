"""Principal components of two circles, and of their images behind a kernel."""

from sklearn.datasets import make_circles
from sklearn.decomposition import PCA, KernelPCA
from sklearn.model_selection import train_test_split

X, y = make_circles(n_samples=1_000, factor=0.3, noise=0.05, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
pca = PCA(n_components=2)
kernel_pca = KernelPCA(n_components=None, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1)
X_test_pca = pca.fit(X_train).transform(X_test)
X_test_kernel_pca = kernel_pca.fit(X_train).transform(X_test)
X_reconstructed_pca = pca.inverse_transform(pca.transform(X_test))
result = {"shape": X_test_pca.shape, "back": float(abs(X_reconstructed_pca - X_test).max().round(9))}
