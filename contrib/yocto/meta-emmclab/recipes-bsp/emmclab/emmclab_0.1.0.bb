SUMMARY = "Health and configuration of eMMC and SD cards"
DESCRIPTION = "Reads the registers of eMMC and SD cards and reports what a card is, how it is configured and how worn it is."
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "\
    file://LICENSE-MIT;md5=fef4502417b6de9ce46fe70b31cf3f9d \
    file://LICENSE-APACHE;md5=22a53954e4e0ec258dfce4391e905dac \
"

inherit cargo cargo-update-recipe-crates

EMMCLAB_URI ?= "file://emmclab-${PV}.tar.gz"
SRC_URI = "${EMMCLAB_URI}"
require ${BPN}-crates.inc

S = "${UNPACKDIR}/emmclab-${PV}"

# The workspace builds crates/emmclab by default: the board's binary.
CARGO_BUILD_FLAGS += "--no-default-features"
