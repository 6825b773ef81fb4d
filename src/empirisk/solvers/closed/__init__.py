"""Linear systems: closed forms, and the factor that makes a kernel explicit."""
