"""More rows than a processor's memory or patience: devices, tables on disk, clusters, each as designs of its own."""
