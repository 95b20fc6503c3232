"""What the entry points of the group `tooz.backends` name: the driver for OpenStack's tooz."""

from coordination.tooz_driver.driver import LogbergDriver

__all__ = ["LogbergDriver"]
