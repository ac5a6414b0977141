//! The virtual card as a device inside QEMU, loaded as a plugin: guest and card on one clock.
//!
//! `qemu` finds the functions of QEMU that are used, and checks them; `device` registers the device type and passes
//! QEMU's calls on; `turns` makes runs with several processors repeatable; `machine` is a card behind such a device,
//! without any knowledge of QEMU; `options` the plugin's arguments, `host` the rig behind the guest's mailbox.
//! Everything runs on QEMU's threads under its one lock. Used by nothing else: see README.md for the licence of what is
//! loaded into QEMU.

mod device;
mod host;
mod machine;
mod options;
mod qemu;
mod turns;

use std::ffi::c_int;

/// The version of QEMU's plugin interface that this was built for; QEMU refuses others.
///
/// Source: QEMU 11.1, `qemu-plugin.h`, QEMU_PLUGIN_VERSION.
#[expect(unsafe_code, reason = "a symbol that QEMU looks up")]
#[unsafe(no_mangle)]
static qemu_plugin_version: c_int = 7;

/// Registers the device types; returns 0, or -1 if this QEMU or an argument cannot be used, which one line says.
///
/// Source: QEMU 11.1, `qemu-plugin.h`.
#[expect(unsafe_code, reason = "a symbol that QEMU looks up")]
#[unsafe(no_mangle)]
extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const std::ffi::c_void,
    argc: c_int,
    argv: *const *const std::ffi::c_char,
) -> c_int {
    let words = qemu::words(argc, argv);
    let installed = options::parse(words.iter().map(String::as_str))
        .map_err(|error| error.to_string())
        .and_then(|options| device::install(id, options));
    match installed {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("emmc-qemu: {why}");
            -1
        }
    }
}
