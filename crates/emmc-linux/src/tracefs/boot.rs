//! Recording a boot: what the kernel's command line needs, and the recording that it made.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::events::{EVENTS, STEPS};
use super::{Recorder, Saved, TracefsError, root};

/// The instance that the kernel makes for a recorded boot.
const INSTANCE: &str = "emmclab-boot";
/// From this version on the kernel makes instances at boot.
const WITH_INSTANCES: (u32, u32) = (6, 4);

/// Events of the block and MMC layers: a boot has no other load whose time counts.
fn all() -> impl Iterator<Item = &'static str> {
    EVENTS.into_iter().chain(STEPS)
}

/// The parameters that record a boot with a kernel of this release; with a buffer of this size for each processor.
pub fn boot_parameters(release: &str, buffer_bytes: u64) -> String {
    let events: Vec<String> = all().map(|event| event.replace('/', ":")).collect();
    let events = events.join(",");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let events = if version >= WITH_INSTANCES {
        format!("trace_instance={INSTANCE},{events}")
    } else {
        format!("trace_event={events}")
    };
    format!("{events} trace_buf_size={}K", buffer_bytes.div_ceil(1024))
}

/// The recording of this boot, in the kernel.
#[derive(Debug)]
pub struct BootRecording {
    recorder: Recorder,
    /// Whether it is the kernel's own buffer, which stays, and not an instance.
    is_global: bool,
}

impl BootRecording {
    /// Finds it: the instance of [`boot_parameters`], else the kernel's own buffer if events are enabled in it.
    ///
    /// Errors: no tracefs, no permission, no recording of a boot.
    pub fn find() -> Result<Self, TracefsError> {
        let (root, mounted) = root()?;
        let instance = root.join("instances").join(INSTANCE);
        let is_global = !instance.is_dir();
        let instance: PathBuf = if is_global { root.clone() } else { instance };
        let enabled = fs::read_to_string(instance.join("set_event"));
        let enabled = enabled.map_err(|error| TracefsError::NoTracefs { place: instance.clone(), error })?;
        let enabled: Vec<String> = enabled.lines().map(|line| line.trim().replace(':', "/")).collect();
        let of = |event: &str| enabled.iter().any(|name| name == event);
        let events: Vec<String> = all().filter(|event| of(event)).map(Into::into).collect();
        let missing = all().filter(|event| !of(event)).map(Into::into).collect();
        let recorder = Recorder {
            instance,
            root,
            mounted,
            buffer_bytes: 0,
            events,
            symbols: String::new(),
            missing,
            event_ns: None,
            is_own: false,
        };
        if recorder.events.iter().any(|event| event.starts_with("block/")) {
            Ok(Self { recorder, is_global })
        } else {
            Err(TracefsError::NoBoot)
        }
    }

    /// Events that it does not have.
    pub fn missing(&self) -> &[String] {
        &self.recorder.missing
    }

    /// Stops it and writes the recording; [`end`](Self::end) removes it.
    ///
    /// Errors: those of the system.
    pub fn save(&self, file: &mut File) -> Result<Saved, TracefsError> {
        self.recorder.save(file)
    }

    /// Removes it from the kernel: the instance, or the events and content of the kernel's own buffer.
    ///
    /// Errors: those of the system.
    pub fn end(self) -> Result<(), TracefsError> {
        let failed = |place: &Path| {
            let place = place.to_path_buf();
            |error| TracefsError::System { place, error }
        };
        if !self.is_global {
            return fs::remove_dir(&self.recorder.instance).map_err(failed(&self.recorder.instance));
        }
        for event in &self.recorder.events {
            self.recorder.set(&format!("events/{event}/enable"), "0")?;
        }
        let content = self.recorder.instance.join("trace");
        File::create(&content).map_err(failed(&content))?;
        // As it is without a recording.
        self.recorder.set("tracing_on", "1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_kernels_get_an_instance_of_their_own() {
        let new = boot_parameters("6.12.107-amd64", 16 << 20);
        assert!(new.starts_with("trace_instance=emmclab-boot,block:block_bio_queue,"), "{new}");
        assert!(new.ends_with(" trace_buf_size=16384K") && !new.contains('/'), "{new}");
        for old in ["6.3.0", "4.19.0-rc1", "x"] {
            assert!(boot_parameters(old, 4096).starts_with("trace_event=block:block_bio_queue,"), "{old}");
        }
    }
}
