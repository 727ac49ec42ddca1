"""Commands for sites that are not started by ``manage.py up``."""
