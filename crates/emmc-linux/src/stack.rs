//! The block devices above a disk: partitions, device mapper, RAID, loop devices, and their mounts.
//!
//! Only sysfs, /proc and /etc are read. Absent on purpose: the table of a mapped device, which only an ioctl of the
//! device mapper prints; its limits in sysfs are what it accepts.

use std::path::{Path, PathBuf};

use emmc_port::{Layer, LayerKind, MountedOn, SourceError, Stack, TrimServices};
use emmc_units::mount_name;

use crate::mounts::{self, Mount};
use crate::tree::Tree;

const SECTOR_BYTES: u64 = 512;

/// A loop on a volume on a loop: no real stack is deeper, a copied tree may hold a circle.
const DEPTH_MAX: u32 = 16;

/// All layers above a disk of this machine, or of a copied tree.
///
/// Errors: the folder given holds no copied /sys; there is no such disk.
pub fn stack(disk: &str, sysroot: Option<&Path>) -> Result<Stack, SourceError> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied)?;
    let name = disk.rsplit('/').next().unwrap_or_default();
    let folder = tree.block(name);
    if name.is_empty() || tree.names(&folder).is_err() {
        let reason = "no such disk in /sys/block".into();
        return Err(SourceError::Unsupported { name: disk.into(), reason });
    }
    let reader = Reader { mounts: mounts::read(&tree), fstab: fstab(&tree), swaps: swaps(&tree), tree: &tree };
    let mut stack = Stack { layers: Vec::new(), services: services(&tree) };
    reader.add(&mut stack, name, &folder, None, 0);
    Ok(stack)
}

/// The disk below a mount point, a partition, a mapped device or a disk; the first one of several.
///
/// Errors: as [`stack`]; nothing of this name.
pub fn disk_below(place: &str, sysroot: Option<&Path>) -> Result<String, SourceError> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied)?;
    let unknown = || {
        let reason = "neither a disk, nor a partition or mapped device, nor where a filesystem is mounted".into();
        SourceError::Unsupported { name: place.into(), reason }
    };
    let mounts = mounts::read(&tree);
    let mounted = mounts.iter().rev().find(|mount| mount.point == place);
    let mut folder = match mounted {
        Some(mount) => folder_of_mount(&tree, mount),
        None => folder_of_name(&tree, place),
    }
    .ok_or_else(unknown)?;
    for _ in 0..DEPTH_MAX {
        let below = tree.names(&folder.join("slaves")).unwrap_or_default();
        if tree.attribute(&folder, "partition").is_some() {
            folder =
                folder.canonicalize().ok().and_then(|folder| Some(folder.parent()?.to_owned())).ok_or_else(unknown)?;
        } else if let Some(next) = below.first().and_then(|name| folder_of_name(&tree, name)) {
            folder = next;
        } else {
            break;
        }
    }
    Ok(folder.file_name().ok_or_else(unknown)?.to_string_lossy().into_owned())
}

/// The name of a disk's host: `mmc0` of the card `mmc0:0001`.
pub fn host_of(disk: &str, sysroot: Option<&Path>) -> Option<String> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied).ok()?;
    let card = tree.block(disk).join("device").canonicalize().ok()?;
    Some(card.file_name()?.to_str()?.split_once(':')?.0.to_owned())
}

fn folder_of_mount(tree: &Tree, mount: &Mount) -> Option<PathBuf> {
    let number = mount.number.as_deref().filter(|number| !number.starts_with("0:"));
    let by_number =
        number.and_then(|number| every_device(tree).into_iter().find(|folder| has_number(tree, folder, number)));
    by_number.or_else(|| folder_of_name(tree, &mount.source))
}

fn has_number(tree: &Tree, folder: &Path, number: &str) -> bool {
    tree.attribute(folder, "dev").is_some_and(|dev| dev.trim() == number)
}

/// The folders of all disks and partitions.
fn every_device(tree: &Tree) -> Vec<PathBuf> {
    let disks = tree.names(&tree.sys("block")).unwrap_or_default();
    let folders = disks.iter().flat_map(|disk| {
        let folder = tree.block(disk);
        let parts = tree.names(&folder).unwrap_or_default().into_iter().filter(|name| name.starts_with(disk.as_str()));
        let parts: Vec<PathBuf> = parts.map(|part| folder.join(part)).collect();
        std::iter::once(folder).chain(parts)
    });
    folders.collect()
}

/// By the kernel's name, or by the one that the device mapper has: `/dev/mapper/NAME`, `/dev/VG/LV`.
fn folder_of_name(tree: &Tree, name: &str) -> Option<PathBuf> {
    let last = name.rsplit('/').next()?;
    let volume = name.strip_prefix("/dev/").and_then(|rest| rest.split_once('/')).map(|(group, volume)| {
        // Source: lvm(8): hyphens are doubled in the mapper's name.
        format!("{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
    });
    every_device(tree).into_iter().find(|folder| {
        let mapped = tree.attribute(folder, "dm/name");
        folder.file_name().is_some_and(|found| found == last)
            || mapped.as_deref().is_some_and(|mapped| mapped == last || Some(mapped) == volume.as_deref())
    })
}

struct Reader<'a> {
    tree: &'a Tree,
    mounts: Vec<Mount>,
    fstab: Vec<FstabLine>,
    swaps: Vec<String>,
}

impl Reader<'_> {
    fn add(&self, stack: &mut Stack, name: &str, folder: &Path, below: Option<&str>, depth: u32) {
        if let Some(known) = stack.layers.iter_mut().find(|layer| layer.name == name) {
            known.below.extend(below.map(str::to_owned));
            return;
        }
        if depth > DEPTH_MAX {
            return;
        }
        let layer = self.layer(name, folder, below);
        let point = layer.mounted.as_ref().map(|mounted| mounted.point.clone());
        stack.layers.push(layer);
        let parts = self.tree.names(folder).unwrap_or_default();
        for part in parts.iter().filter(|part| part.starts_with(name)) {
            let inner = folder.join(part);
            if self.tree.attribute(&inner, "partition").is_some() {
                self.add(stack, part, &inner, Some(name), depth + 1);
            }
        }
        for holder in self.tree.names(&folder.join("holders")).unwrap_or_default() {
            self.add(stack, &holder, &self.tree.block(&holder), Some(name), depth + 1);
        }
        if let Some(point) = point {
            for looped in self.loops_in(&point) {
                self.add(stack, &looped, &self.tree.block(&looped), Some(name), depth + 1);
            }
        }
    }

    fn layer(&self, name: &str, folder: &Path, below: Option<&str>) -> Layer {
        let tree = self.tree;
        let is_partition = tree.attribute(folder, "partition").is_some();
        // A partition has its disk's queue.
        let queue = if is_partition { folder.parent().unwrap_or(folder) } else { folder }.join("queue");
        let number = |folder: &Path, file: &str| tree.attribute(folder, file)?.trim().parse::<u64>().ok();
        let stat: Vec<u64> = tree
            .attribute(folder, "stat")
            .map(|text| text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect())
            .unwrap_or_default();
        let bytes = |index: usize| stat.get(index).map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
        let uuid = tree.attribute(folder, "dm/uuid").unwrap_or_default();
        let kind = match () {
            () if is_partition => LayerKind::Partition,
            // Source: cryptsetup and LVM set these prefixes.
            () if uuid.starts_with("CRYPT-") => LayerKind::Crypt,
            () if uuid.starts_with("LVM-") => LayerKind::Lvm,
            () if folder.join("dm").is_dir() => LayerKind::Mapper,
            () if folder.join("md").is_dir() => LayerKind::Raid,
            () if folder.join("loop").is_dir() => LayerKind::Loop,
            () if below.is_none() => LayerKind::Disk,
            () => LayerKind::Other,
        };
        let mapped_name = tree.attribute(folder, "dm/name");
        let own_number = tree.attribute(folder, "dev").map(|number| number.trim().to_owned());
        Layer {
            name: name.into(),
            kind,
            below: below.map(str::to_owned).into_iter().collect(),
            start_sectors: number(folder, "start").filter(|_| is_partition),
            size_bytes: number(folder, "size").map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
            discard_max_bytes: number(&queue, "discard_max_bytes"),
            discard_max_hw_bytes: number(&queue, "discard_max_hw_bytes"),
            discard_granularity_bytes: number(&queue, "discard_granularity"),
            written_bytes: bytes(6),
            discarded_bytes: bytes(13),
            mounted: self.mounted(name, own_number.as_deref(), mapped_name.as_deref()),
            is_swap: self.swaps.iter().any(|swap| {
                let last = swap.rsplit('/').next().unwrap_or_default();
                last == name || mapped_name.as_deref() == Some(last)
            }),
            mapped_name,
        }
    }

    fn mounted(&self, name: &str, number: Option<&str>, mapped: Option<&str>) -> Option<MountedOn> {
        let by_mapper =
            || self.mounts.iter().find(|mount| mapped.is_some() && mount.source.strip_prefix("/dev/mapper/") == mapped);
        let mount = mounts::of(&self.mounts, name, number).or_else(by_mapper)?;
        let folder = self.tree.sys("fs").join(&mount.fstype).join(name);
        let kilobytes = self.tree.attribute(&folder, "lifetime_write_kbytes");
        let line = self.fstab.iter().find(|line| line.point == mount.point);
        Some(MountedOn {
            point: mount.point.clone(),
            fstype: mount.fstype.clone(),
            options: mount.options.split(',').map(str::to_owned).collect(),
            lifetime_written_bytes: kilobytes.and_then(|text| text.trim().parse::<u64>().ok()?.checked_mul(1024)),
            fstab_options: line.map(|line| line.options.clone()),
        })
    }

    /// Loop devices over a file of the filesystem that is mounted there.
    fn loops_in(&self, point: &str) -> Vec<String> {
        let disks = self.tree.names(&self.tree.sys("block")).unwrap_or_default();
        let is_in = |disk: &String| {
            let Some(file) = self.tree.attribute(&self.tree.block(disk), "loop/backing_file") else { return false };
            let around = self.mounts.iter().filter(|mount| Path::new(&file).starts_with(&mount.path));
            around.max_by_key(|mount| mount.path.as_os_str().len()).is_some_and(|mount| mount.point == point)
        };
        disks.into_iter().filter(is_in).collect()
    }
}

struct FstabLine {
    point: String,
    options: Vec<String>,
}

/// Source: fstab(5).
fn fstab(tree: &Tree) -> Vec<FstabLine> {
    let text = tree.read(&tree.etc("fstab")).unwrap_or_default();
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let lines = words.filter(|words| words.first().is_some_and(|first| !first.starts_with('#')));
    let line = |words: Vec<&str>| {
        let options = words.get(3)?.split(',').map(str::to_owned).collect();
        let point = String::from_utf8_lossy(&mount_name(words.get(1)?.as_bytes())).into_owned();
        Some(FstabLine { point, options })
    };
    lines.filter_map(line).collect()
}

fn swaps(tree: &Tree) -> Vec<String> {
    let text = tree.read(&tree.proc("swaps")).unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

fn services(tree: &Tree) -> TrimServices {
    // Source: crypttab(5): name, device, key file, options.
    let text = tree.read(&tree.etc("crypttab")).unwrap_or_default();
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let crypttab: Vec<Vec<&str>> =
        lines.filter(|words| words.first().is_some_and(|first| !first.starts_with('#'))).collect();
    let discards =
        |words: &&Vec<&str>| words.get(3).is_some_and(|options| options.split(',').any(|option| option == "discard"));
    let name = |words: &Vec<&str>| words.first().map(|name| (*name).to_owned());
    TrimServices {
        fstrim_timer: tree.unit_is_enabled("fstrim.timer"),
        fstrim_last_run: last_run(tree),
        cron: cron(tree),
        lvm_issue_discards: tree.read(&tree.etc("lvm/lvm.conf")).ok().and_then(|text| issue_discards(&text)),
        crypttab_discard: crypttab.iter().filter(discards).filter_map(name).collect(),
        crypttab: crypttab.iter().filter_map(name).collect(),
    }
}

/// Source: systemd.timer(5), `Persistent=`: the time of the stamp file is that of the last run.
fn last_run(tree: &Tree) -> Option<String> {
    let stamp = tree.root("var/lib/systemd/timers/stamp-fstrim.timer");
    let time = std::fs::symlink_metadata(stamp).ok()?.modified().ok()?;
    let seconds = time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    Some(jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?.to_string())
}

fn cron(tree: &Tree) -> Vec<String> {
    let mut files = vec![tree.etc("crontab"), tree.root("var/spool/cron/crontabs/root")];
    for folder in ["cron.d", "cron.hourly", "cron.daily", "cron.weekly", "cron.monthly"].map(|name| tree.etc(name)) {
        files.extend(tree.names(&folder).unwrap_or_default().into_iter().map(|name| folder.join(name)));
    }
    let runs = |path: &PathBuf| {
        let text = tree.read(path).unwrap_or_default();
        text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains("fstrim"))
    };
    let root = tree.root("");
    let shown = |path: PathBuf| format!("/{}", path.strip_prefix(&root).unwrap_or(&path).display());
    files.into_iter().filter(runs).map(shown).collect()
}

/// Source: lvm.conf(5), `devices/issue_discards`.
fn issue_discards(text: &str) -> Option<bool> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut values = lines.filter_map(|line| line.split_once('=')).filter(|(key, _)| key.trim() == "issue_discards");
    values.next_back().map(|(_, value)| value.trim() == "1")
}

#[cfg(test)]
mod tests;
