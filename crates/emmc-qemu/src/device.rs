//! The device type, and QEMU's calls of it.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use emmc_serve::pci::{BAR_BYTES, Function, Identity};

use crate::machine::Machine;
use crate::options::{CardOptions, Options};
use crate::qemu::{Functions, MemoryRegionOps, Object, Timer, TypeInfo, peek};
use crate::turns;

/// The device's name on QEMU's command line; `-2` and so on follow for further cards.
const NAME: &str = "emmclab-sdhci";
/// Writes below this offset of configuration space concern QEMU too: BARs, bus mastering, MSI.
const QEMUS_CONFIG: u32 = 0x60;
/// The capability of message-signalled interrupts, as in the function's own configuration space.
const MSI: u8 = 0x50;
const INTERRUPT_LINE: u32 = 0x3c;
const INTERRUPT_PIN: usize = 0x3d;

/// What the device types need, from the installation on.
struct Installed {
    qemu: Functions,
    options: Options,
    /// Where PCIDeviceClass has `vendor_id`; four pointers precede it.
    vendor_at: usize,
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();
static DEVICES: Mutex<Vec<&'static Device>> = Mutex::new(Vec::new());

/// A device in the machine.
struct Device {
    object: *mut Object,
    qemu: Functions,
    timer: OnceLock<Timer>,
    /// It signals by messages; else by its line.
    has_msi: bool,
    machine: Mutex<Machine>,
}

// SAFETY: the pointers are QEMU's, whose lock orders all calls.
unsafe impl Send for Device {}
// SAFETY: the same.
unsafe impl Sync for Device {}

static OPS: MemoryRegionOps = MemoryRegionOps {
    read: mmio_read,
    write: mmio_write,
    read_with_attrs: 0,
    write_with_attrs: 0,
    // DEVICE_LITTLE_ENDIAN.
    endianness: 2,
    valid: (1, 8, true, 0),
    implemented: (1, 8, true),
};

/// Registers a device type for each card.
///
/// Errors: this QEMU cannot be used.
pub(crate) fn install(id: u64, options: Options) -> Result<(), String> {
    let qemu = Functions::find()?;
    let count = options.cards.len();
    let interfaces: &'static [*const std::ffi::c_char; 2] =
        Box::leak(Box::new([c"pci-express-device".as_ptr(), std::ptr::null()]));
    let installed = Installed { qemu, options, vendor_at: vendor_offset(&qemu)? };
    INSTALLED.set(installed).map_err(|_| "the plugin is loaded twice: name all cards in one".to_string())?;
    for index in 0..count {
        let name = if index == 0 { NAME.into() } else { format!("{NAME}-{}", index + 1) };
        let name = CString::new(name).map_err(|error| error.to_string())?;
        qemu.register(TypeInfo {
            name: Box::leak(name.into_boxed_c_str()).as_ptr(),
            parent: c"pci-device".as_ptr(),
            instance_size: 0,
            instance_align: 0,
            instance_init: None,
            instance_post_init: None,
            instance_finalize: None,
            is_abstract: false,
            class_size: 0,
            class_init: Some(class_init),
            class_base_init: None,
            class_data: index as *const c_void,
            interfaces: interfaces.as_ptr(),
        });
    }
    qemu.on_exit(id, at_exit);
    turns::install(id, qemu);
    Ok(())
}

/// Where PCIDeviceClass has `vendor_id`: found at that of a class whose numbers are known.
///
/// Errors: this QEMU has no such class, or another layout.
fn vendor_offset(qemu: &Functions) -> Result<usize, String> {
    // QEMU's own SD host controller: Red Hat's vendor number, device 7.
    const KNOWN: [u8; 4] = [0x36, 0x1b, 0x07, 0x00];
    let class = qemu.class(c"sdhci-pci") as usize;
    if class == 0 {
        return Err("this QEMU has no device sdhci-pci, whose class shows the layout of others".into());
    }
    let found = (64..1024).step_by(2).find(|at| peek::<4>(class + at) == Some(KNOWN));
    // Realize, exit, and the two functions of configuration space come before it.
    found.filter(|at| at % 8 == 0).ok_or_else(|| "this QEMU's class of PCI devices has an unknown layout".into())
}

fn installed() -> &'static Installed {
    INSTALLED.get().expect("the type was registered by the installation")
}

/// The card of a device, by the name of its type.
fn index_of(type_name: &str) -> usize {
    type_name.rsplit_once('-').and_then(|(_, number)| number.parse::<usize>().ok()).map_or(0, |number| number - 1)
}

extern "C" fn class_init(class: *mut c_void, index: *const c_void) {
    let Installed { qemu, options, vendor_at } = installed();
    let function = Function::new(options.cards[index as usize].controller);
    let field = |offset: usize| class.cast::<u8>().wrapping_add(offset);
    // SAFETY: the class is of a type below pci-device and has its fields at these offsets, which `vendor_offset` found.
    unsafe {
        field(vendor_at - 32).cast::<extern "C" fn(*mut Object, *mut *mut c_void)>().write(realize);
        field(vendor_at - 16).cast::<extern "C" fn(*mut Object, u32, c_int) -> u32>().write(config_read);
        field(vendor_at - 8).cast::<extern "C" fn(*mut Object, u32, u32, c_int)>().write(config_write);
        field(*vendor_at).cast::<u16>().write(function.read_config(0, 2) as u16);
        field(vendor_at + 2).cast::<u16>().write(function.read_config(2, 2) as u16);
        field(vendor_at + 4).cast::<u8>().write(function.read_config(8, 1) as u8);
        field(vendor_at + 6).cast::<u16>().write(function.read_config(10, 2) as u16);
    }
    qemu.on_reset(class, reset);
}

extern "C" fn realize(object: *mut Object, _error: *mut *mut c_void) {
    if let Err(why) = try_realize(object) {
        eprintln!("emmc-qemu: {why}");
        // The command line cannot be carried out, and QEMU's own report of an error needs its allocator.
        std::process::exit(1);
    }
}

fn try_realize(object: *mut Object) -> Result<(), String> {
    let Installed { qemu, options, .. } = installed();
    if !qemu.counts_instructions() {
        return Err("the machine's clock is the host's: add -icount shift=0,sleep=off".into());
    }
    turns::settle()?;
    let index = index_of(&qemu.type_name(object));
    let card: &CardOptions = &options.cards[index];
    let host = options.host.filter(|_| index == 0);
    let machine = Machine::open(card, host).map_err(|error| error.to_string())?;
    let has_msi = card.controller != Identity::Generic;
    let device: &'static Device = Box::leak(Box::new(Device {
        object,
        qemu: *qemu,
        timer: OnceLock::new(),
        has_msi,
        machine: Mutex::new(machine),
    }));
    let opaque = std::ptr::from_ref(device).cast_mut().cast();
    device.timer.set(qemu.timer(tick, opaque)).map_err(|_| "the timer exists".to_string())?;
    qemu.add_bar(object, &OPS, opaque, BAR_BYTES as u64);
    if has_msi {
        qemu.add_msi(object, MSI)?;
    } else {
        set_pin(qemu, object)?;
    }
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).push(device);
    Ok(())
}

/// Gives the device interrupt pin A, in QEMU's copy of its configuration space, which has no function for that.
///
/// Errors: the copy was not found.
fn set_pin(qemu: &Functions, object: *mut Object) -> Result<(), String> {
    const MARK: u8 = 0xa5;
    const PCI_DEVICE_BYTES: usize = 4096;
    // INTERRUPT_LINE can be written; the configuration space is where the mark and then its complement appear.
    let mut candidates: Vec<usize> = (0..PCI_DEVICE_BYTES)
        .step_by(8)
        .filter_map(|at| peek::<8>(object as usize + at).map(usize::from_ne_bytes))
        .collect();
    for mark in [MARK, !MARK, 0] {
        qemu.default_write_config(object, INTERRUPT_LINE, mark.into(), 1);
        candidates.retain(|space| peek::<1>(space.wrapping_add(INTERRUPT_LINE as usize)) == Some([mark]));
    }
    candidates.dedup();
    let [space] = candidates[..] else {
        return Err(format!("this QEMU's PCI devices have an unknown layout: {} candidates", candidates.len()));
    };
    // SAFETY: it is the configuration space of this device, of at least 256 bytes.
    unsafe { (space as *mut u8).add(INTERRUPT_PIN).write(1) };
    Ok(())
}

impl Device {
    /// Does something with the card, then brings interrupt and timer up to date.
    fn act<T>(&self, act: impl FnOnce(&mut Machine, &Functions, i64) -> T) -> T {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = act(&mut machine, &self.qemu, self.qemu.now_ns());
        let due = machine.settle();
        let (rises, level) = (machine.board.take_interrupt(), machine.board.interrupt());
        drop(machine);
        if self.has_msi && self.qemu.has_msi_enabled(self.object) {
            if rises {
                self.qemu.notify(self.object);
            }
        } else if !self.has_msi {
            self.qemu.set_line(self.object, level);
        }
        if let Some(timer) = self.timer.get() {
            self.qemu.set_timer(*timer, due);
        }
        answer
    }
}

/// The device of a callback.
fn device(opaque: *mut c_void) -> &'static Device {
    // SAFETY: it is what `try_realize` has registered, which is never freed.
    unsafe { &*opaque.cast::<Device>() }
}

fn device_of(object: *mut Object) -> Option<&'static Device> {
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    devices.iter().copied().find(|device| device.object == object)
}

extern "C" fn mmio_read(opaque: *mut c_void, at: u64, bytes: u32) -> u64 {
    device(opaque).act(|machine, qemu, ns| machine.read(at as usize, bytes as usize, qemu, ns))
}

extern "C" fn mmio_write(opaque: *mut c_void, at: u64, value: u64, bytes: u32) {
    device(opaque).act(|machine, qemu, ns| machine.write(at as usize, bytes as usize, value, qemu, ns));
}

extern "C" fn tick(opaque: *mut c_void) {
    device(opaque).act(|machine, qemu, ns| machine.tick(qemu, ns));
}

extern "C" fn config_read(object: *mut Object, at: u32, bytes: c_int) -> u32 {
    let Some(device) = device_of(object) else { return u32::MAX };
    device.act(|machine, _, _| machine.board.read_config(at as usize, bytes as usize) as u32)
}

extern "C" fn config_write(object: *mut Object, at: u32, value: u32, bytes: c_int) {
    let Some(device) = device_of(object) else { return };
    device.act(|machine, _, ns| machine.write_config(at as usize, bytes as usize, value.into(), ns));
    if at < QEMUS_CONFIG {
        device.qemu.default_write_config(object, at, value, bytes);
    }
}

extern "C" fn reset(object: *mut Object) {
    if let Some(device) = device_of(object) {
        device.act(|machine, _, _| machine.board.reset());
    }
}

extern "C" fn at_exit(_: u64, _: *mut c_void) {
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    for device in devices.iter() {
        let mut machine = device.machine.lock().unwrap_or_else(PoisonError::into_inner);
        for error in machine.finish() {
            eprintln!("emmc-qemu: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_numbered_from_the_second_on() {
        assert_eq!([NAME, "emmclab-sdhci-2", "emmclab-sdhci-10"].map(index_of), [0, 1, 9]);
    }
}
