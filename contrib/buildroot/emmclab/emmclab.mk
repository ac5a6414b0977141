################################################################################
#
# emmclab
#
################################################################################

EMMCLAB_VERSION = 0.1.0
EMMCLAB_SITE = $(call qstrip,$(BR2_PACKAGE_EMMCLAB_SITE))
EMMCLAB_SOURCE = emmclab-$(EMMCLAB_VERSION).tar.gz
EMMCLAB_LICENSE = MIT or Apache-2.0
EMMCLAB_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE
EMMCLAB_SUBDIR = crates/emmclab
EMMCLAB_CARGO_BUILD_OPTS = --no-default-features
EMMCLAB_CARGO_INSTALL_OPTS = --no-default-features

$(eval $(cargo-package))
