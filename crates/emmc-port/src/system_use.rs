//! What a system does with the disk below it: swap, logs, temporary files, and who writes.

use serde::Serialize;

/// A swap space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapSpace {
    /// Device or file, as the kernel names it.
    pub name: String,
    /// The mount point of the filesystem that a file lies on; nothing for a device.
    pub on_mount: Option<String>,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// In use. Unit: bytes.
    pub used_bytes: u64,
}

/// A folder that programs write to by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenFolder {
    /// The folder: `/var/log`.
    pub path: String,
    /// Where its filesystem is mounted: `/`.
    pub mount: String,
    /// Its type.
    pub fstype: String,
}

/// Where journald keeps the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Journald {
    /// `Storage=` of its configuration: `volatile`, `persistent`, `auto`, `none`.
    pub storage: String,
    /// Whether /var/log/journal exists: `auto` writes there then.
    pub has_folder: bool,
}

impl Journald {
    /// Whether it writes to /var/log/journal.
    pub fn is_persistent(&self) -> bool {
        self.storage == "persistent" || self.storage == "auto" && self.has_folder
    }
}

/// Containers of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Containers {
    /// The engine: `docker`, `podman`, `containerd`.
    pub engine: String,
    /// The folder of images, changed files and logs.
    pub folder: String,
    /// Where its filesystem is mounted.
    pub mount: String,
    /// Root filesystems that are mounted from it: about as many containers run.
    pub running: u32,
    /// Where docker keeps the output of containers; absent where it does not say: `json-file`.
    pub log_driver: Option<String>,
    /// Whether it limits the size of their logs.
    pub limits_logs: bool,
}

impl Containers {
    /// Whether the logs of docker's containers are files without a limit.
    pub fn logs_grow(&self) -> bool {
        !self.limits_logs && matches!(self.log_driver.as_deref(), None | Some("json-file"))
    }
}

/// A process that has written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Writer {
    /// Its name.
    pub name: String,
    /// How many processes of this name.
    pub processes: u32,
    /// Sent to the block layer, less what was deleted before it got there. Unit: bytes.
    pub written_bytes: u64,
}

/// Who wrote while somebody watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedWrites {
    /// Unit: seconds.
    pub seconds: f64,
    /// Written to the disk. Unit: bytes.
    pub disk_bytes: Option<u64>,
    /// Processes by name, the one that wrote most first. To any disk: the kernel does not count them apart.
    pub writers: Vec<Writer>,
}

/// A system above a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemUse {
    /// Its swap spaces, on any disk.
    pub swaps: Vec<SwapSpace>,
    /// Written to swap since the boot. Unit: bytes.
    pub swapped_out_bytes: Option<u64>,
    /// vm.swappiness.
    pub swappiness: Option<u64>,
    /// Folders that programs write to by themselves, on any disk.
    pub folders: Vec<WrittenFolder>,
    /// Engines whose folder exists, on any disk.
    pub containers: Vec<Containers>,
    /// Where systemd is.
    pub journald: Option<Journald>,
    /// The scheduler of the disk.
    pub scheduler: Option<String>,
    /// Who wrote, if that was watched.
    pub watched: Option<WatchedWrites>,
}
