//! What this machine, or the one of a copied tree, does with a disk by itself: swap, logs, temporary files, writers.
//!
//! Only sysfs, /proc, /etc and the names of two folders are read. Absent on purpose: writers by file, which needs the
//! kernel's tracing (`tracefs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use emmc_port::{Containers, Journald, SourceError, SwapSpace, SystemUse, Writer, WrittenFolder};
use emmc_units::mount_name;

use crate::mounts::{self, Mount};
use crate::tree::Tree;

/// What programs write to by themselves.
const FOLDERS: [&str; 7] = ["/", "/var/log", "/var/tmp", "/tmp", "/var/lib/docker", "/var/cache", "/home"];

/// Container engines and their folders.
const ENGINES: [[&str; 2]; 3] =
    [["docker", "/var/lib/docker"], ["podman", "/var/lib/containers"], ["containerd", "/var/lib/containerd"]];

/// A system's use of a disk. What is unknown is absent.
///
/// Errors: the folder given holds no copied /sys.
pub fn system_use(disk: &str, sysroot: Option<&Path>) -> Result<SystemUse, SourceError> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied)?;
    let mounts = mounts::read(&tree);
    let number = |path: &str| tree.read(&tree.proc(path)).ok()?.trim().parse().ok();
    Ok(SystemUse {
        swaps: swaps(&tree, &mounts),
        swapped_out_bytes: swapped_out(&tree),
        swappiness: number("sys/vm/swappiness"),
        folders: FOLDERS.iter().filter_map(|path| folder(&mounts, path)).collect(),
        containers: ENGINES.iter().filter_map(|engine| containers(&tree, &mounts, engine)).collect(),
        journald: journald(&tree),
        scheduler: scheduler(&tree, disk),
        watched: None,
    })
}

fn around<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts.iter().filter(|mount| path.starts_with(&mount.path)).max_by_key(|mount| mount.path.as_os_str().len())
}

fn folder(mounts: &[Mount], path: &str) -> Option<WrittenFolder> {
    let mount = around(mounts, Path::new(path))?;
    Some(WrittenFolder { path: path.into(), mount: mount.point.clone(), fstype: mount.fstype.clone() })
}

/// Source: proc(5), `/proc/swaps`: sizes in KiB.
fn swaps(tree: &Tree, mounts: &[Mount]) -> Vec<SwapSpace> {
    let text = tree.read(&tree.proc("swaps")).unwrap_or_default();
    let swap = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = String::from_utf8_lossy(&mount_name(words.first()?.as_bytes())).into_owned();
        let bytes = |index: usize| words.get(index)?.parse::<u64>().ok()?.checked_mul(1024);
        let is_file = words.get(1) == Some(&"file");
        let on_mount = around(mounts, Path::new(&name)).filter(|_| is_file).map(|mount| mount.point.clone());
        Some(SwapSpace { on_mount, size_bytes: bytes(2)?, used_bytes: bytes(3)?, name })
    };
    text.lines().skip(1).filter_map(swap).collect()
}

/// Source: Linux `mm/page_io.c`: `pswpout` counts pages.
fn swapped_out(tree: &Tree) -> Option<u64> {
    let text = tree.read(&tree.proc("vmstat")).ok()?;
    let pages = text.lines().find_map(|line| line.strip_prefix("pswpout "))?.trim().parse::<u64>().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Source: journald.conf(5): later files override earlier ones; without a line it is `auto`.
fn journald(tree: &Tree) -> Option<Journald> {
    let mut files: Vec<PathBuf> = vec![tree.root("usr/lib/systemd/journald.conf"), tree.etc("systemd/journald.conf")];
    let mut pieces = BTreeMap::new();
    for folder in [tree.root("usr/lib/systemd/journald.conf.d"), tree.etc("systemd/journald.conf.d")] {
        for name in tree.names(&folder).unwrap_or_default().into_iter().filter(|name| name.ends_with(".conf")) {
            // One of /etc replaces the one of /usr/lib with the same name.
            pieces.insert(name.clone(), folder.join(name));
        }
    }
    files.extend(pieces.into_values());
    let texts: Vec<String> = files.iter().filter_map(|path| tree.read(path).ok()).collect();
    if texts.is_empty() {
        return None;
    }
    let mut values = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.trim().strip_prefix("Storage="));
    let storage = values.next_back().unwrap_or("auto").trim().to_lowercase();
    Some(Journald { storage, has_folder: tree.names(&tree.root("var/log/journal")).is_ok() })
}

/// An engine whose folder exists.
///
/// Source: dockerd(8), `/etc/docker/daemon.json`: `log-driver`, and `max-size` of `log-opts`.
fn containers(tree: &Tree, mounts: &[Mount], [engine, folder]: &[&str; 2]) -> Option<Containers> {
    tree.names(&tree.root(folder.trim_start_matches('/'))).ok()?;
    // docker and podman mount root filesystems below their folder, containerd elsewhere.
    let holds_changes = |mount: &Mount| {
        let mut upper = mount.options.split(',').filter_map(|option| option.strip_prefix("upperdir="));
        upper.any(|upper| Path::new(upper).starts_with(folder))
    };
    let is_root =
        |mount: &&Mount| mount.fstype == "overlay" && (mount.path.starts_with(folder) || holds_changes(mount));
    let text = if *engine == "docker" { tree.read(&tree.etc("docker/daemon.json")).ok() } else { None };
    let json: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    let log_driver = json.as_ref().and_then(|json| Some(json.get("log-driver")?.as_str()?.to_owned()));
    // The driver `local` limits them by itself.
    let limits_logs = log_driver.as_deref() == Some("local")
        || json.as_ref().is_some_and(|json| json.get("log-opts").is_some_and(|of| of.get("max-size").is_some()));
    Some(Containers {
        engine: (*engine).into(),
        folder: (*folder).into(),
        mount: around(mounts, Path::new(folder))?.point.clone(),
        running: mounts.iter().filter(is_root).count() as u32,
        log_driver,
        limits_logs,
    })
}

/// The one in use is in brackets: `none [mq-deadline]`.
fn scheduler(tree: &Tree, disk: &str) -> Option<String> {
    let text = tree.attribute(&tree.block(disk), "queue/scheduler")?;
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split(']').next());
    Some(inner.unwrap_or(text.trim()).to_owned())
}

/// Bytes that each process of this machine has sent to the block layer, by process number and start.
#[derive(Clone, Debug, Default)]
pub struct WriterCounts(BTreeMap<(u32, u64), (String, u64)>);

impl WriterCounts {
    /// Reads them now; processes that cannot be read are missing.
    pub fn read() -> Self {
        let tree = Tree::live();
        let numbers = tree.names(&tree.proc("")).unwrap_or_default();
        let count = |number: &String| {
            let process = number.parse::<u32>().ok()?;
            let folder = tree.proc(number);
            let stat = tree.attribute(&folder, "stat")?;
            // Source: proc(5): the name is in brackets and may have any character; the start is field 22.
            let name = stat.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
            let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
            let io = tree.attribute(&folder, "io")?;
            let value = |key: &str| io.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<u64>().ok();
            let written = value("write_bytes:")?.saturating_sub(value("cancelled_write_bytes:").unwrap_or(0));
            Some(((process, start), (name, written)))
        };
        Self(numbers.iter().filter_map(count).collect())
    }

    /// Whether any process could be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was written since `earlier`, by name, the most first. Processes that ended meanwhile are missing.
    pub fn since(&self, earlier: &Self) -> Vec<Writer> {
        let mut all: BTreeMap<&str, Writer> = BTreeMap::new();
        for (process, (name, written)) in &self.0 {
            let before = earlier.0.get(process).map_or(0, |(_, before)| *before);
            let new = written.saturating_sub(before);
            if new > 0 {
                let writer = all.entry(name).or_insert_with(|| Writer { name: name.clone(), ..Writer::default() });
                writer.processes += 1;
                writer.written_bytes += new;
            }
        }
        let mut all: Vec<Writer> = all.into_values().collect();
        all.sort_by_key(|writer| std::cmp::Reverse(writer.written_bytes));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_logs_and_folders_of_a_copied_tree() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/block/mmcblk0/queue/scheduler", "none [mq-deadline] bfq\n");
        write(
            "proc/self/mountinfo",
            "36 35 179:2 / / rw - ext4 /dev/root rw\n37 36 0:30 / /tmp rw - tmpfs tmpfs rw\n\
             38 36 0:41 / /var/lib/docker/overlay2/4f/merged rw - overlay overlay rw,lowerdir=x\n\
             39 36 0:42 / /run/containerd/5e/rootfs rw - overlay overlay rw,upperdir=/var/lib/containerd/s/7/fs\n",
        );
        write(
            "proc/swaps",
            "Filename\t\t\tType\t\tSize\tUsed\tPriority\n/swap\\040file file 102400 2048 -2\n\
             /dev/zram0 partition 4096 0 100\n",
        );
        write("proc/vmstat", "pswpin 3\npswpout 1000\n");
        write("proc/sys/vm/swappiness", "60\n");
        write("etc/systemd/journald.conf", "[Journal]\n#Storage=auto\n");
        write("etc/systemd/journald.conf.d/10-volatile.conf", "[Journal]\nStorage=Volatile\n");
        write("var/log/journal/x/system.journal", "");
        write("var/lib/docker/overlay2/l", "");
        write("var/lib/containers/storage", "");
        write("var/lib/containerd/s/7/fs", "");
        write("etc/docker/daemon.json", r#"{"log-driver": "json-file", "log-opts": {"max-size": "10m"}}"#);
        let found = system_use("mmcblk0", Some(folder.path())).unwrap();
        assert_eq!(found.scheduler.as_deref(), Some("mq-deadline"));
        let file = SwapSpace {
            name: "/swap file".into(),
            on_mount: Some("/".into()),
            size_bytes: 102_400 << 10,
            used_bytes: 2048 << 10,
        };
        assert_eq!((found.swaps.len(), &found.swaps[0], &found.swaps[1].on_mount), (2, &file, &None));
        assert_eq!(found.swapped_out_bytes, Some(1000 * rustix::param::page_size() as u64));
        assert_eq!(found.swappiness, Some(60));
        let on = |path: &str| found.folders.iter().find(|folder| folder.path == path).unwrap().mount.clone();
        assert_eq!((on("/var/log"), on("/tmp")), ("/".into(), "/tmp".into()));
        let docker = Containers {
            engine: "docker".into(),
            folder: "/var/lib/docker".into(),
            mount: "/".into(),
            running: 1,
            log_driver: Some("json-file".into()),
            limits_logs: true,
        };
        let engines: Vec<_> = found.containers.iter().map(|of| (of.engine.as_str(), of.running)).collect();
        assert_eq!(engines, [("docker", 1), ("podman", 0), ("containerd", 1)]);
        assert_eq!(found.containers[0], docker);
        assert_eq!(found.journald, Some(Journald { storage: "volatile".into(), has_folder: true }));
        assert!(!found.journald.unwrap().is_persistent());
        std::fs::remove_file(folder.path().join("etc/systemd/journald.conf.d/10-volatile.conf")).unwrap();
        let journald = system_use("mmcblk0", Some(folder.path())).unwrap().journald.unwrap();
        assert!(journald.storage == "auto" && journald.is_persistent());
    }

    #[test]
    fn what_this_process_writes_is_counted() {
        let before = WriterCounts::read();
        // A filesystem in memory counts nothing.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 16 << 20]).unwrap();
        let writers = WriterCounts::read().since(&before);
        if before.is_empty() {
            return eprintln!("SKIPPED: /proc/PID/io cannot be read here");
        }
        // Files that other tests of this process delete meanwhile are taken off; they are small.
        let wrote: u64 = writers.iter().map(|writer| writer.written_bytes).sum();
        assert!(wrote >= 15 << 20, "{writers:?}");
        assert!(WriterCounts::default().since(&before).is_empty());
    }
}
