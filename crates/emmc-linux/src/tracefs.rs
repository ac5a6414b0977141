//! Recording with the kernel's tracefs: an instance of its own, buffered in the kernel, drained when it ends.
//!
//! The instance is removed when the recorder is dropped, and nothing else of the kernel's tracing is touched. What an
//! earlier recorder left behind that was killed is removed at the start. The file is a `trace.dat` of version 6. Absent
//! on purpose: probes, functions and BPF.

mod boot;
mod calibration;
mod events;
mod place;
mod probes;
mod sums;
mod symbols;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::mount::{UnmountFlags, unmount};

pub use self::boot::{BootRecording, boot_parameters};
use self::events::{
    CALLS_RECORDED, EVENTS, FILE_EVENTS, INTERRUPTS, INTERRUPTS_OF, LIMITS, LIMITS_OF, REASON_EVENTS, STEPS, SWITCHES,
    SWITCHES_OF, WAKE_UPS,
};
use self::place::{remove_abandoned, root};
pub use self::sums::FileSums;
use self::symbols::symbol;

/// Instances of this program: followed by the number of its process.
const INSTANCE: &str = "emmclab-";
/// Asked for at once: more than any description of a page or an event.
const READ_BYTES: usize = 1 << 16;

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// The kernel has none, or root is required.
    #[error("{place}: {error}; recording needs root and a kernel with CONFIG_EVENT_TRACING")]
    NoTracefs {
        /// Where.
        place: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// No event of the block layer, or of writes into files, exists.
    #[error("{0}: no event to record; recording needs a kernel with CONFIG_BLOCK and CONFIG_EVENT_TRACING")]
    NoEvents(PathBuf),
    /// The kernel recorded no boot.
    #[error("the kernel has no recording of this boot; `emmclab trace record --at-boot` prints the parameters for one")]
    NoBoot,
    /// The recording cannot be written into its file.
    #[error("the recording cannot be written: {0}")]
    Output(io::Error),
    /// An error of the system.
    #[error("{place}: {error}")]
    System {
        /// Where.
        place: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Requests from the system call to the card, with as few events as their spans need.
    Requests,
    /// The same with more events: steps within the block layer, interrupts, every wake-up and switch.
    Details,
    /// The same, and writes into files.
    RequestsAndFiles,
    /// Writes into files only: few events.
    Files,
}

/// A recorder, with its instance.
#[derive(Debug)]
pub struct Recorder {
    instance: PathBuf,
    /// Where tracefs is mounted.
    root: PathBuf,
    /// Whether the instance was made by this program.
    is_own: bool,
    /// Mounted for this recording only.
    mounted: Option<PathBuf>,
    /// Of each processor's buffer. Unit: bytes.
    buffer_bytes: u64,
    events: Vec<String>,
    /// Lines of `/proc/kallsyms`: the functions in the recording.
    symbols: String,
    /// Events of the default set that this kernel does not have.
    pub missing: Vec<String>,
    /// What an event costs the processor that records it. Unit: nanoseconds; `None` if it could not be measured.
    pub event_ns: Option<f64>,
}

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Events in the file.
    pub events: u64,
    /// Events that were overwritten or dropped.
    pub lost: u64,
    /// Of the file. Unit: bytes.
    pub bytes: u64,
}

impl Recorder {
    /// Makes an instance with a buffer of this size for each processor, and chooses its events.
    ///
    /// Errors: no tracefs, no permission, no event.
    pub fn new(recorded: Recorded, buffer_bytes: u64) -> Result<Self, TracefsError> {
        let mut recorder = Self::empty(buffer_bytes)?;
        recorder.event_ns = recorder.calibrate();
        let calls = |call: &&str| [format!("syscalls/sys_enter_{call}"), format!("syscalls/sys_exit_{call}")];
        let all = EVENTS.iter().map(ToString::to_string).chain(CALLS_RECORDED.iter().flat_map(calls));
        if recorded != Recorded::Files {
            let details = if recorded == Recorded::Details { &[STEPS[0], STEPS[1], WAKE_UPS][..] } else { &[] };
            for event in all.chain(details.iter().map(ToString::to_string)) {
                if recorder.enable(&event) { recorder.events.push(event) } else { recorder.missing.push(event) }
            }
            let there = REASON_EVENTS.iter().filter(|event| recorder.enable(event));
            let there: Vec<String> = there.map(ToString::to_string).collect();
            recorder.events.extend(there);
            if recorded == Recorded::RequestsAndFiles {
                // What is read while recording goes on: its own calls, of which each page that it reads makes four, are
                // no workload. A filter costs every event, so that there is none otherwise.
                drop(recorder.set("events/syscalls/filter", &format!("common_pid != {}", std::process::id())));
            }
            // Unfiltered, a system's interrupts and switches cost more than they say.
            let filtered = match recorded {
                Recorded::Details => &[(INTERRUPTS, Some(INTERRUPTS_OF)), (SWITCHES, None)][..],
                _ => &[(SWITCHES, Some(SWITCHES_OF))],
            };
            for (event, filter) in filtered {
                let filtered = filter.map_or(Ok(()), |filter| recorder.set(&format!("events/{event}/filter"), filter));
                let is_there = filtered.is_ok() && recorder.enable(event);
                let list = if is_there { &mut recorder.events } else { &mut recorder.missing };
                list.push((*event).to_owned());
            }
            if recorded == Recorded::Details {
                recorder.record_limits();
                recorder.record_writes();
            }
        }
        if matches!(recorded, Recorded::Files | Recorded::RequestsAndFiles) {
            let is_new = |event: &&&str| !recorder.events.iter().any(|other| other == **event);
            let there = FILE_EVENTS.iter().filter(is_new).filter(|event| recorder.enable(event));
            let there: Vec<String> = there.map(ToString::to_string).collect();
            recorder.events.extend(there);
        }
        let has_one = recorder.events.iter().any(|event| recorded == Recorded::Files || event.starts_with("block/"));
        if has_one { Ok(recorder) } else { Err(TracefsError::NoEvents(recorder.instance.clone())) }
    }

    /// An instance without events.
    fn empty(buffer_bytes: u64) -> Result<Self, TracefsError> {
        let (root, mounted) = root()?;
        remove_abandoned(&root);
        let instance = root.join("instances").join(format!("{INSTANCE}{}", std::process::id()));
        let (events, missing, symbols) = (Vec::new(), Vec::new(), String::new());
        let buffer_bytes = buffer_bytes.max(64 << 10);
        let recorder =
            Self { instance, root, is_own: true, mounted, buffer_bytes, events, symbols, missing, event_ns: None };
        let made = fs::create_dir(&recorder.instance);
        made.map_err(|error| TracefsError::NoTracefs { place: recorder.instance.clone(), error })?;
        recorder.set("tracing_on", "0")?;
        recorder.set("buffer_size_kb", &buffer_bytes.div_ceil(1024).to_string())?;
        // The clock of user space; older kernels have only their own.
        drop(recorder.set("trace_clock", "mono"));
        Ok(recorder)
    }

    fn enable(&self, event: &str) -> bool {
        self.set(&format!("events/{event}/enable"), "1").is_ok()
    }

    /// The time limits of commands, where the driver is one that has them and the kernel shows its addresses.
    fn record_limits(&mut self) {
        let Some(line) = symbol(LIMITS_OF) else { return };
        let filter = format!("function == 0x{}", line.split(' ').next().unwrap_or_default());
        if self.set(&format!("events/{LIMITS}/filter"), &filter).is_ok() && self.enable(LIMITS) {
            self.events.push(LIMITS.to_owned());
            self.symbols.push_str(&line);
        }
    }

    /// The returns of the function that writes a command, where the kernel has events of functions (fprobe).
    fn record_writes(&mut self) {
        let (process, event) = (std::process::id(), probes::event(std::process::id()));
        if probes::define(&self.root, process) {
            if self.enable(&event) { self.events.push(event) } else { probes::remove(&self.root, process) }
        }
    }

    /// Starts to record.
    ///
    /// Errors: those of the system.
    pub fn start(&self) -> Result<(), TracefsError> {
        self.set("tracing_on", "1")
    }

    /// Stops and writes the recording.
    ///
    /// Errors: those of the system.
    pub fn save(&self, file: &mut File) -> Result<Saved, TracefsError> {
        self.set("tracing_on", "0")?;
        self.write(file, u64::MAX)
    }

    /// Writes what was recorded since the last time, while recording goes on. `lost` counts from the start.
    ///
    /// Of each processor it reads one buffer at most: what is recorded faster than it is read waits for the next time.
    ///
    /// Errors: those of the system.
    pub fn drain(&self, file: &mut File) -> Result<Saved, TracefsError> {
        self.write(file, self.buffer_bytes)
    }

    /// How full the fullest processor's buffer is: 1 is full.
    ///
    /// Errors: those of the system.
    pub fn fill(&self) -> Result<f64, TracefsError> {
        let failed = |error| TracefsError::System { place: self.instance.clone(), error };
        let mut most = 0;
        for cpu in self.processors().map_err(failed)? {
            most = most.max(self.statistics(cpu).map_err(failed)?.2);
        }
        Ok(most as f64 / self.buffer_bytes as f64)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        let place = self.instance.join(file);
        fs::write(&place, value).map_err(|error| TracefsError::System { place, error })
    }

    /// Appends to a file: a trigger beside those that are there.
    fn add(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        let place = self.instance.join(file);
        let written = File::options().append(true).open(&place).and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| TracefsError::System { place, error })
    }

    /// The whole of a file. `header_page` and `header_event` answer the first read only, whatever it asks for.
    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.instance.join(file))?;
        let (mut all, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(all),
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn processors(&self) -> io::Result<Vec<u32>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.instance.join("per_cpu"))? {
            let name = entry?.file_name();
            all.extend(name.to_str().and_then(|name| name.strip_prefix("cpu")).and_then(|cpu| cpu.parse::<u32>().ok()));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn write(&self, file: &mut File, limit_bytes: u64) -> Result<Saved, TracefsError> {
        let of_kernel = |error| TracefsError::System { place: self.instance.clone(), error };
        let processors = self.processors().map_err(of_kernel)?;
        let header = self.read("events/header_page").map_err(of_kernel)?;
        // The length of a page is in the description of its data.
        let page_bytes = page_bytes(&header).unwrap_or(4096);
        let mut head = self.head(&header, page_bytes).map_err(of_kernel)?;
        let count = processors.last().map_or(0, |last| last + 1);
        head.extend(count.to_ne_bytes());
        head.extend(b"options  \0");
        let clock = self.read("trace_clock").map_err(of_kernel)?;
        head.extend(4u16.to_ne_bytes());
        head.extend((clock.len() as u32 + 1).to_ne_bytes());
        head.extend(&clock);
        head.extend([0; 3]);
        head.extend(b"flyrecord\0");
        let table = head.len();
        head.resize((table + 16 * count as usize).next_multiple_of(page_bytes), 0);
        file.write_all(&head).map_err(TracefsError::Output)?;
        let (mut saved, mut at) = (Saved::default(), head.len() as u64);
        for cpu in processors {
            let (events, lost, _) = self.statistics(cpu).map_err(of_kernel)?;
            (saved.events, saved.lost) = (saved.events + events, saved.lost + lost);
            let bytes = self.drain_cpu(cpu, page_bytes, limit_bytes, file)?;
            let place = table + 16 * cpu as usize;
            head[place..place + 8].copy_from_slice(&at.to_ne_bytes());
            head[place + 8..place + 16].copy_from_slice(&bytes.to_ne_bytes());
            at += bytes;
        }
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&head)).map_err(TracefsError::Output)?;
        saved.bytes = at;
        Ok(saved)
    }

    /// Formats and names.
    fn head(&self, header: &[u8], page_bytes: usize) -> io::Result<Vec<u8>> {
        let mut head = b"\x17\x08\x44tracing6\0".to_vec();
        head.push(u8::from(cfg!(target_endian = "big")));
        head.push(size_of::<usize>() as u8);
        head.extend((page_bytes as u32).to_ne_bytes());
        let text = |head: &mut Vec<u8>, name: &[u8], text: &[u8]| {
            head.extend(name);
            head.extend((text.len() as u64).to_ne_bytes());
            head.extend(text);
        };
        text(&mut head, b"header_page\0", header);
        text(&mut head, b"header_event\0", &self.read("events/header_event")?);
        head.extend(0u32.to_ne_bytes());
        let mut systems: Vec<&str> = self.events.iter().filter_map(|event| event.split('/').next()).collect();
        systems.dedup();
        head.extend((systems.len() as u32).to_ne_bytes());
        for system in systems {
            let of: Vec<_> = self.events.iter().filter(|event| event.split('/').next() == Some(system)).collect();
            head.extend(system.as_bytes());
            head.push(0);
            head.extend((of.len() as u32).to_ne_bytes());
            for event in of {
                text(&mut head, b"", &self.read(&format!("events/{event}/format"))?);
            }
        }
        head.extend((self.symbols.len() as u32).to_ne_bytes());
        head.extend(self.symbols.as_bytes());
        // No formats of printk.
        head.extend([0; 4]);
        let names = fs::read(self.root.join("saved_cmdlines")).unwrap_or_default();
        text(&mut head, b"", &names);
        Ok(head)
    }

    /// Events in a processor's buffer, those that were overwritten or dropped, and the bytes of those in it.
    fn statistics(&self, cpu: u32) -> io::Result<(u64, u64, u64)> {
        let text = self.read(&format!("per_cpu/cpu{cpu}/stats"))?;
        let text = String::from_utf8_lossy(&text);
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Ok((of("entries:"), of("overrun:") + of("commit overrun:") + of("dropped events:"), of("bytes:")))
    }

    fn drain_cpu(&self, cpu: u32, page_bytes: usize, limit_bytes: u64, file: &mut File) -> Result<u64, TracefsError> {
        let path = self.instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let failed = |error| TracefsError::System { place: path.clone(), error };
        let mut pipe = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).map_err(failed)?;
        let (mut page, mut sum) = (vec![0; page_bytes], 0);
        // While recording goes on, there may always be one more event.
        while sum < limit_bytes {
            match pipe.read(&mut page) {
                Ok(0) => return Ok(sum),
                Ok(count) => {
                    // A page that is not full comes whole, its rest is undefined.
                    page[count..].fill(0);
                    file.write_all(&page).map_err(TracefsError::Output)?;
                    sum += page_bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sum),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(sum)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_own {
            drop(self.set("tracing_on", "0"));
            drop(fs::remove_dir(&self.instance));
            probes::remove(&self.root, std::process::id());
        }
        if let Some(mounted) = &self.mounted {
            let _ = unmount(mounted, UnmountFlags::DETACH);
            drop(fs::remove_dir(mounted));
        }
    }
}

/// `field: char data; offset:16; size:4080;` means pages of 4096 bytes.
fn page_bytes(header: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(header);
    let line = text.lines().find(|line| line.contains("char data"))?;
    let of = |name: &str| line.split(name).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
    (of("offset:")? + of("size:")?).checked_next_power_of_two()
}
