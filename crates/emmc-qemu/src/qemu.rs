//! The functions of QEMU that are used, found by their names when the plugin is loaded.
//!
//! They are no stable interface. Each signature is that of QEMU 11.1; a QEMU that lacks one, or that was built without
//! modules and so exports none, is refused. Source of the signatures: QEMU 11.1.3, include/qom/object.h,
//! include/system/memory.h, include/hw/pci/pci_device.h, include/hw/pci/msi.h, include/qemu/timer.h,
//! include/plugins/qemu-plugin.h, include/exec/icount.h, include/accel/accel-cpu-ops.h, include/qemu/rcu.h.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute_copy;

use emmc_serve::sdhci::{GuestMemory, Unmapped};

/// A QEMU object, of whatever type.
pub(crate) type Object = c_void;

/// QEMU_CLOCK_VIRTUAL.
const VIRTUAL: c_int = 1;

/// TypeInfo.
#[repr(C)]
pub(crate) struct TypeInfo {
    pub(crate) name: *const c_char,
    pub(crate) parent: *const c_char,
    pub(crate) instance_size: usize,
    pub(crate) instance_align: usize,
    pub(crate) instance_init: Option<extern "C" fn(*mut Object)>,
    pub(crate) instance_post_init: Option<extern "C" fn(*mut Object)>,
    pub(crate) instance_finalize: Option<extern "C" fn(*mut Object)>,
    pub(crate) is_abstract: bool,
    pub(crate) class_size: usize,
    pub(crate) class_init: Option<extern "C" fn(*mut c_void, *const c_void)>,
    pub(crate) class_base_init: Option<extern "C" fn(*mut c_void, *const c_void)>,
    pub(crate) class_data: *const c_void,
    pub(crate) interfaces: *const *const c_char,
}

/// MemoryRegionOps.
#[repr(C)]
pub(crate) struct MemoryRegionOps {
    pub(crate) read: extern "C" fn(*mut c_void, u64, u32) -> u64,
    pub(crate) write: extern "C" fn(*mut c_void, u64, u64, u32),
    pub(crate) read_with_attrs: usize,
    pub(crate) write_with_attrs: usize,
    pub(crate) endianness: c_int,
    pub(crate) valid: (u32, u32, bool, usize),
    pub(crate) implemented: (u32, u32, bool),
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Addresses of QEMU's functions.
        #[derive(Clone, Copy)]
        pub(crate) struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            address_space_memory: *mut c_void,
            /// Whether instructions are the clock: an enumeration, 0 if not.
            use_icount: *const c_int,
            icount_handle_interrupt: *const c_void,
        }

        impl Functions {
            /// Finds them in the running program.
            ///
            /// Errors: those that are missing.
            pub(crate) fn find() -> Result<Self, String> {
                let mut missing = Vec::new();
                let mut look = |name: &'static str| {
                    // The name ends with a zero.
                    // SAFETY: dlsym only reads the name, which is a C string.
                    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
                    if found.is_null() {
                        missing.push(name.trim_end_matches('\0'));
                    }
                    found
                };
                let found = ($(look(concat!(stringify!($name), "\0")),)*);
                let address_space_memory = look("address_space_memory\0");
                let use_icount = look("use_icount\0").cast_const().cast();
                let icount_handle_interrupt = look("icount_handle_interrupt\0").cast_const();
                if !missing.is_empty() {
                    return Err(format!(
                        "this QEMU does not export {} ({} of its functions that are needed): use Debian's, which is \
                         built with modules",
                        missing[0],
                        missing.len()
                    ));
                }
                #[allow(clippy::missing_transmute_annotations)]
                let functions!(@names $($name),*) = found;
                // SAFETY: each is the address of the function of that name, whose signature the table states.
                Ok(unsafe {
                    Self {
                        $($name: transmute_copy(&$name),)*
                        address_space_memory,
                        use_icount,
                        icount_handle_interrupt,
                    }
                })
            }
        }
    };
    (@names $($name:ident),*) => { ($($name,)*) };
}

functions! {
    type_register_static: fn(*const TypeInfo) -> *mut c_void;
    object_class_by_name: fn(*const c_char) -> *mut c_void;
    object_get_typename: fn(*const Object) -> *const c_char;
    device_class_set_legacy_reset: fn(*mut c_void, extern "C" fn(*mut Object));
    memory_region_init_io: fn(*mut c_void, *mut Object, *const MemoryRegionOps, *mut c_void, *const c_char, u64);
    pci_register_bar: fn(*mut Object, c_int, u8, *mut c_void);
    pci_default_write_config: fn(*mut Object, u32, u32, c_int);
    pci_set_irq: fn(*mut Object, c_int);
    msi_init: fn(*mut Object, u8, u32, bool, bool, *mut *mut c_void) -> c_int;
    msi_enabled: fn(*const Object) -> bool;
    msi_notify: fn(*mut Object, u32);
    qemu_clock_get_ns: fn(c_int) -> i64;
    timer_init_full: fn(*mut c_void, *mut c_void, c_int, c_int, c_int, extern "C" fn(*mut c_void), *mut c_void);
    timer_mod_ns: fn(*mut c_void, i64);
    timer_del: fn(*mut c_void);
    address_space_rw: fn(*mut c_void, u64, u64, *mut c_void, u64, bool) -> u32;
    qemu_plugin_register_atexit_cb: fn(u64, extern "C" fn(u64, *mut c_void), *mut c_void);
    qemu_plugin_register_vcpu_tb_trans_cb: fn(u64, extern "C" fn(*const c_void, *mut c_void), *mut c_void);
    qemu_plugin_tb_n_insns: fn(*const c_void) -> usize;
    qemu_plugin_tb_get_insn: fn(*const c_void, usize) -> *mut c_void;
    qemu_plugin_insn_data: fn(*const c_void, *mut c_void, usize) -> usize;
    qemu_plugin_register_vcpu_insn_exec_cb: fn(*mut c_void, extern "C" fn(c_uint, *mut c_void), c_int, *mut c_void);
    qemu_get_cpu: fn(c_int) -> *mut c_void;
    icount_update: fn(*mut c_void);
    qemu_in_vcpu_thread: fn() -> bool;
    get_ptr_rcu_reader: fn() -> *const c_void;
    rcu_remove_force_rcu_notifier: fn(*mut c_void);
}

// SAFETY: addresses of functions and of one object of QEMU, which live as long as the process.
unsafe impl Send for Functions {}
// SAFETY: the same; QEMU's lock orders the calls.
unsafe impl Sync for Functions {}

/// A timer on the machine's clock.
#[derive(Clone, Copy)]
pub(crate) struct Timer(*mut c_void);

impl Functions {
    /// Whether the machine's clock counts instructions (`-icount`).
    pub(crate) fn counts_instructions(&self) -> bool {
        // SAFETY: a variable of QEMU.
        unsafe { self.use_icount.read() != 0 }
    }

    /// The machine's clock. Unit: ns.
    pub(crate) fn now_ns(&self) -> i64 {
        // SAFETY: reads a clock.
        unsafe { (self.qemu_clock_get_ns)(VIRTUAL) }
    }

    /// Registers a device type; its description lives on.
    pub(crate) fn register(&self, info: TypeInfo) {
        // SAFETY: QEMU keeps the description, which is never freed.
        unsafe { (self.type_register_static)(Box::leak(Box::new(info))) };
    }

    /// The class of a type that exists.
    pub(crate) fn class(&self, name: &CStr) -> *mut c_void {
        // SAFETY: QEMU reads a C string.
        unsafe { (self.object_class_by_name)(name.as_ptr()) }
    }

    /// The name of an object's type.
    pub(crate) fn type_name(&self, object: *const Object) -> String {
        // SAFETY: the object is one that QEMU has passed; names of types are C strings that live on.
        unsafe { CStr::from_ptr((self.object_get_typename)(object)) }.to_string_lossy().into_owned()
    }

    /// What is called when the machine is reset.
    pub(crate) fn on_reset(&self, class: *mut c_void, reset: extern "C" fn(*mut Object)) {
        // SAFETY: called in class_init, with the class that QEMU has passed.
        unsafe { (self.device_class_set_legacy_reset)(class, reset) };
    }

    /// Gives the device a BAR 0 of `bytes` behind `ops`, which get `opaque`.
    pub(crate) fn add_bar(&self, device: *mut Object, ops: &'static MemoryRegionOps, opaque: *mut c_void, bytes: u64) {
        // A MemoryRegion has some 300 bytes.
        let region: *mut c_void = Box::leak(Box::new([0u64; 512])).as_mut_ptr().cast();
        // SAFETY: called in realize, with its device; region, operations and name live on.
        unsafe {
            (self.memory_region_init_io)(region, device, ops, opaque, c"emmclab-sdhci".as_ptr(), bytes);
            (self.pci_register_bar)(device, 0, 0, region);
        }
    }

    /// Adds the capability of one message-signalled interrupt at `offset`.
    pub(crate) fn add_msi(&self, device: *mut Object, offset: u8) -> Result<(), String> {
        let mut error = std::ptr::null_mut();
        // SAFETY: called in realize, with its device.
        let done = unsafe { (self.msi_init)(device, offset, 1, true, false, &raw mut error) };
        if done < 0 { Err(format!("MSI: error {done}")) } else { Ok(()) }
    }

    /// QEMU's own part of a write to configuration space: it maps BARs, and keeps MSI's address and data.
    pub(crate) fn default_write_config(&self, device: *mut Object, at: u32, value: u32, bytes: c_int) {
        // SAFETY: the device and the access are those that QEMU has passed.
        unsafe { (self.pci_default_write_config)(device, at, value, bytes) };
    }

    /// Whether the guest has switched to message-signalled interrupts.
    pub(crate) fn has_msi_enabled(&self, device: *const Object) -> bool {
        // SAFETY: the device is realized.
        unsafe { (self.msi_enabled)(device) }
    }

    /// Sends the message of the interrupt.
    pub(crate) fn notify(&self, device: *mut Object) {
        // SAFETY: the device is realized and has one message.
        unsafe { (self.msi_notify)(device, 0) };
    }

    /// Sets the level of the interrupt line; the device has a pin.
    pub(crate) fn set_line(&self, device: *mut Object, level: bool) {
        // SAFETY: the device is realized.
        unsafe { (self.pci_set_irq)(device, level.into()) };
    }

    /// A timer that calls `act` with `opaque`.
    pub(crate) fn timer(&self, act: extern "C" fn(*mut c_void), opaque: *mut c_void) -> Timer {
        // A QEMUTimer has 48 bytes.
        let timer: *mut c_void = Box::leak(Box::new([0u64; 64])).as_mut_ptr().cast();
        // SAFETY: the timer's memory lives on; no group of timers: QEMU's own.
        unsafe { (self.timer_init_full)(timer, std::ptr::null_mut(), VIRTUAL, 1, 0, act, opaque) };
        Timer(timer)
    }

    /// Sets when the timer is due; absent: never.
    pub(crate) fn set_timer(&self, timer: Timer, due_ns: Option<i64>) {
        // SAFETY: it was made by `timer`.
        match due_ns {
            Some(at) => unsafe { (self.timer_mod_ns)(timer.0, at) },
            None => unsafe { (self.timer_del)(timer.0) },
        }
    }

    /// Has `act` called when QEMU exits.
    pub(crate) fn on_exit(&self, id: u64, act: extern "C" fn(u64, *mut c_void)) {
        // SAFETY: called in the plugin's installation, with its own number.
        unsafe { (self.qemu_plugin_register_atexit_cb)(id, act, std::ptr::null_mut()) };
    }

    /// Has `look` called with each block of instructions that is translated.
    pub(crate) fn on_translation(&self, id: u64, look: extern "C" fn(*const c_void, *mut c_void)) {
        // SAFETY: called in the plugin's installation, with its own number.
        unsafe { (self.qemu_plugin_register_vcpu_tb_trans_cb)(id, look, std::ptr::null_mut()) };
    }

    /// Has `act` called with the processor's number before each instruction of a translated block that `is_meant`, by
    /// its code.
    pub(crate) fn before_instructions(
        &self,
        block: *const c_void,
        is_meant: impl Fn(&[u8]) -> bool,
        act: extern "C" fn(c_uint, *mut c_void),
    ) {
        // QEMU_PLUGIN_CB_NO_REGS.
        const NO_REGISTERS: c_int = 0;
        // The longest instruction of x86 has 15 bytes.
        let mut code = [0u8; 16];
        // SAFETY: called in a call of `on_translation`, with its block; QEMU copies at most as many bytes as fit.
        unsafe {
            for index in 0..(self.qemu_plugin_tb_n_insns)(block) {
                let instruction = (self.qemu_plugin_tb_get_insn)(block, index);
                let length = (self.qemu_plugin_insn_data)(instruction, code.as_mut_ptr().cast(), code.len());
                if is_meant(&code[..length.min(code.len())]) {
                    (self.qemu_plugin_register_vcpu_insn_exec_cb)(instruction, act, NO_REGISTERS, std::ptr::null_mut());
                }
            }
        }
    }

    /// Adds the instructions that a processor has executed, with the whole block that it is in, to the machine's clock.
    pub(crate) fn count_instructions(&self, processor: c_uint) {
        // SAFETY: called on the thread of that processor, which exists.
        unsafe {
            let processor = (self.qemu_get_cpu)(processor.try_into().unwrap_or(0));
            if !processor.is_null() {
                (self.icount_update)(processor);
            }
        }
    }

    /// Has `is_idle` asked too, with a processor that has nothing to do, whether the machine's clock may jump to its
    /// next event.
    ///
    /// Errors: this QEMU's class of accelerators has an unknown layout.
    pub(crate) fn on_idle(&self, is_idle: extern "C" fn(*const c_void) -> bool) -> Result<(), String> {
        // AccelOpsClass has, as words: kick_vcpu_thread, cpu_thread_is_idle, four functions that this accelerator does
        // not need, handle_interrupt.
        const IDLE_BEFORE_INTERRUPT: usize = 5;
        let unknown = || "this QEMU's class of accelerators has an unknown layout".to_string();
        let class = self.class(c"tcg-accel-ops") as usize;
        if class == 0 {
            return Err(unknown());
        }
        let word = |index: usize| peek::<8>(class + index * 8).map(usize::from_ne_bytes);
        let interrupt = (8..64).find(|&index| word(index) == Some(self.icount_handle_interrupt as usize));
        let at = interrupt.ok_or_else(unknown)? - IDLE_BEFORE_INTERRUPT;
        let is_free = (at..at + IDLE_BEFORE_INTERRUPT).all(|index| word(index) == Some(0));
        if !is_free || word(at - 1).is_none_or(|kick| kick == 0) {
            return Err(unknown());
        }
        // SAFETY: the class lives on, and has a pointer to such a function there, as its neighbours show.
        unsafe { ((class + at * 8) as *mut extern "C" fn(*const c_void) -> bool).write(is_idle) };
        Ok(())
    }

    /// Whether this is the thread of the processors.
    pub(crate) fn is_processors_thread(&self) -> bool {
        // SAFETY: reads a variable of this thread.
        unsafe { (self.qemu_in_vcpu_thread)() }
    }

    /// Whether it is the last of the machine's processors.
    pub(crate) fn is_last(&self, processor: *const c_void) -> bool {
        // SAFETY: QEMU compares numbers.
        let of = |number: c_int| unsafe { (self.qemu_get_cpu)(number) };
        (0..).map(of).take_while(|found| !found.is_null()).last().is_some_and(|last| last.cast_const() == processor)
    }

    /// Takes from the calling thread what QEMU would interrupt it with when memory is to be freed.
    pub(crate) fn defer_freeing(&self) {
        // NotifierList force_rcu in struct rcu_reader_data.
        const NOTIFIERS: usize = 0x20;
        // SAFETY: this thread's own structure; the list is a pointer to its first element, whose second word is the
        // next one. QEMU takes its own lock.
        unsafe {
            let list = (self.get_ptr_rcu_reader)() as usize + NOTIFIERS;
            while let Some(first) = peek::<8>(list).map(usize::from_ne_bytes).filter(|&first| first != 0) {
                (self.rcu_remove_force_rcu_notifier)(first as *mut c_void);
            }
        }
    }

    fn rw(&self, address: u64, buffer: *mut u8, bytes: usize, is_write: bool) -> Result<(), Unmapped> {
        // SAFETY: the buffer has that many bytes; QEMU's lock is held, as in every call of a device.
        let failed = unsafe {
            (self.address_space_rw)(self.address_space_memory, address, 0, buffer.cast(), bytes as u64, is_write)
        };
        if failed == 0 { Ok(()) } else { Err(Unmapped { address, bytes }) }
    }
}

impl GuestMemory for Functions {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        self.rw(address, into.as_mut_ptr(), into.len(), false)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Unmapped> {
        self.rw(address, from.as_ptr().cast_mut(), from.len(), true)
    }
}

/// The plugin's arguments.
pub(crate) fn words(argc: c_int, argv: *const *const c_char) -> Vec<String> {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: QEMU passes that many C strings.
    let word = |index: usize| unsafe { CStr::from_ptr(*argv.add(index)) };
    (0..count).map(|index| word(index).to_string_lossy().into_owned()).collect()
}

/// Copies this process's memory; absent: it is not all readable.
pub(crate) fn peek<const N: usize>(address: usize) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: N };
    // SAFETY: the kernel checks the source, and the destination is ours.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    (usize::try_from(copied) == Ok(N)).then_some(bytes)
}
