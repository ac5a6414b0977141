//! The context of a bench: the card, its bus, the block layer, the filesystem, the machine.
//!
//! Everything is read; unreadable values are absent, with a note if a reader would miss them.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use emmc_port::{BusInUse, CardData};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{Field, reg};
use emmc_regs::ssr::Ssr;
use emmc_workload::context::{BusFacts, CardFacts, Context, DiskFacts, Effort, FilesystemFacts, HostFacts, Life, Wear};

use crate::live_card::LiveCard;
use crate::tree::Tree;
use crate::{card_name, ioctl, mounts};

/// EXT_CSD fields that a benchmark's reader looks for.
const REGISTERS: [&Field; 16] = [
    reg::EXT_CSD_REV,
    reg::DEVICE_TYPE,
    reg::HS_TIMING,
    reg::STROBE_SUPPORT,
    reg::CACHE_SIZE,
    reg::CACHE_CTRL,
    reg::CMDQ_SUPPORT,
    reg::CMDQ_DEPTH,
    reg::CMDQ_MODE_EN,
    reg::BKOPS_EN,
    reg::WR_REL_SET,
    reg::PARTITION_SETTING_COMPLETED,
    reg::PARTITIONS_ATTRIBUTE,
    reg::OPTIMAL_WRITE_SIZE,
    reg::ERASE_GROUP_DEF,
    reg::HC_ERASE_GRP_SIZE,
];

/// Filesystems without a device.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// The effort of a bench: the work of the machine for it.
#[derive(Debug)]
pub struct Meter {
    began: std::time::Instant,
    used: [std::time::Duration; 2],
}

impl Default for Meter {
    fn default() -> Self {
        Self { began: std::time::Instant::now(), used: ioctl::processor_time() }
    }
}

impl Meter {
    /// Since the meter was made.
    pub fn effort(&self) -> Effort {
        let [user, system] = ioctl::processor_time();
        let [user_before, system_before] = self.used;
        Effort {
            time_s: self.began.elapsed().as_secs_f64(),
            user_s: user.saturating_sub(user_before).as_secs_f64(),
            system_s: system.saturating_sub(system_before).as_secs_f64(),
        }
    }
}

/// All known values of a target before the first request; a file without a name is in `folder`.
///
/// Errors: it is not there.
pub fn context(path: &Path, folder: Option<&Path>, is_direct: bool) -> std::io::Result<Context> {
    let found = std::fs::metadata(path)?;
    let place = folder.unwrap_or(path).canonicalize()?;
    let tree = Tree::live();
    let mut context = Context { host: Some(host(&tree)), ..Context::default() };
    let number = if found.file_type().is_block_device() {
        found.rdev()
    } else {
        context.filesystem = filesystem(&tree, &place, &found, is_direct);
        found.dev()
    };
    let Some(disk) = disk_folder(&tree, number, &place) else {
        context.notes.push("which block device is below it is not known".into());
        return Ok(context);
    };
    let facts = disk_facts(&tree, &disk);
    if let Some(card) = card_name::disk_of(&facts.name).map(str::to_owned) {
        match LiveCard::new(card).read() {
            Ok(data) => {
                of_card(&data, &mut context);
                let folder = tree.block(&facts.name).join("device");
                let erased = tree.attribute(&folder, "preferred_erase_size").and_then(|text| text.trim().parse().ok());
                if let Some(card) = &mut context.card {
                    card.preferred_erase_bytes = erased.filter(|bytes| *bytes > 0);
                }
            }
            Err(error) => context.notes.push(error.to_string()),
        }
    }
    context.disk = Some(facts);
    Ok(context)
}

/// The values at the end: the card's life again, and the share that the writes cost.
pub fn finish(context: &mut Context, meter: &Meter, written_bytes: u64) {
    context.effort = Some(meter.effort());
    let Some(disk) = &context.disk else { return };
    if let Some(card) = card_name::disk_of(&disk.name) {
        let data = LiveCard::new(card).read().unwrap_or_default();
        context.life_after = life(&data);
    }
    context.wear = disk.size_bytes.map(|size| Wear::of(written_bytes, size, None));
}

/// Bytes written to the disk below since the machine started, by all programs. Unit: bytes.
///
/// Source: Linux `Documentation/block/stat.rst`: the seventh number, always in sectors of 512 bytes.
pub fn disk_written_bytes(context: &Context) -> Option<u64> {
    let (tree, disk) = (Tree::live(), context.disk.as_ref()?);
    let text = tree.attribute(&tree.block(&disk.name), "stat")?;
    text.split_whitespace().nth(6)?.parse::<u64>().ok()?.checked_mul(512)
}

/// Adds the values of a card's registers and of its host.
pub fn of_card(data: &CardData, context: &mut Context) {
    context.bus = bus(data);
    context.life_before = life(data);
    context.card = Some(card_facts(data));
    if context.bus.is_none() && data.host.is_empty() && data.origins.iter().any(|o| o.format == emmc_port::Format::Live)
    {
        context.notes.push("the bus and its ceiling are known to root only (debugfs)".into());
    }
}

fn card_facts(data: &CardData) -> CardFacts {
    let ext_csd = data.ext_csd.as_ref();
    let info = ext_csd.map(|ext_csd| ext_csd.decode().0);
    let identity = data.cid.zip(data.kind).map(|(cid, kind)| cid.decode(kind, info.as_ref().and_then(|info| info.rev)));
    let maker = data.cid.zip(data.kind).and_then(|(cid, kind)| cid.manufacturer(kind));
    let register = |field: &&Field| Some((field.name.to_owned(), ext_csd?.raw(field)?));
    let kind = data.kind.map(|kind| match kind {
        CardKind::Emmc => "emmc",
        CardKind::Sd => "sd",
    });
    CardFacts {
        kind: kind.map(str::to_owned),
        manufacturer: maker.map(|maker| maker.to_string()),
        name: identity.as_ref().map(|identity| identity.product_name.clone()),
        serial: identity.as_ref().map(|identity| identity.serial_number),
        cid: data.cid.map(|cid| cid.0.iter().map(|byte| format!("{byte:02x}")).collect()),
        queueing_offered: info.as_ref().and_then(|info| info.cmdq_supported),
        queueing_on: info.as_ref().and_then(|info| info.cmdq_on),
        cache_bytes: info.as_ref().and_then(|info| info.cache).map(|cache| cache.0),
        cache_on: info.as_ref().and_then(|info| info.cache_on),
        au_bytes: data.ssr.and_then(|ssr| Ssr(ssr).au_size_bytes()),
        preferred_erase_bytes: None,
        registers: REGISTERS.iter().filter_map(register).collect::<BTreeMap<_, _>>(),
    }
}

fn life(data: &CardData) -> Option<Life> {
    let ext_csd = data.ext_csd.as_ref()?;
    let life = Life {
        type_a: ext_csd.byte(reg::DEVICE_LIFE_TIME_EST_TYP_A),
        type_b: ext_csd.byte(reg::DEVICE_LIFE_TIME_EST_TYP_B),
        pre_eol_info: ext_csd.byte(reg::PRE_EOL_INFO),
    };
    (life.type_a.is_some() || life.type_b.is_some()).then_some(life)
}

/// The bus as the host controller runs it.
fn bus(data: &CardData) -> Option<BusFacts> {
    let BusInUse { mode, lines, clock_hz, mb_per_s_max } = data.host.bus()?;
    Some(BusFacts { mode, lines, clock_hz, mb_per_s_max, source: "debugfs ios: clock x lines x edges".into() })
}

fn disk_folder(tree: &Tree, number: u64, path: &Path) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let by_number = tree.sys("dev/block").join(format!("{major}:{minor}")).canonicalize().ok();
    // Some filesystems (btrfs, overlay) have numbers of their own; a mount may tell the device by name.
    let by_mount = || {
        let mounts = mounts::read(tree);
        let source = &mounts::around(&mounts, path)?.source;
        tree.sys("class/block").join(source.strip_prefix("/dev/")?).canonicalize().ok()
    };
    let folder = by_number.or_else(by_mount)?;
    let is_partition = tree.attribute(&folder, "partition").is_some();
    Some(if is_partition { folder.parent()?.to_owned() } else { folder })
}

fn disk_facts(tree: &Tree, disk: &Path) -> DiskFacts {
    let queue = disk.join("queue");
    let text = |name: &str| tree.attribute(&queue, name).map(|text| text.trim().to_owned());
    let number = |name: &str| text(name).and_then(|text| text.parse().ok());
    // The one in use is in brackets: "none [mq-deadline]".
    let chosen = |text: String| match text.split_once('[') {
        Some((_, rest)) => rest.split(']').next().unwrap_or_default().to_owned(),
        None => text,
    };
    let model = ["model", "name"].iter().find_map(|name| tree.attribute(&disk.join("device"), name));
    DiskFacts {
        name: disk.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        model: model.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        size_bytes: crate::blocks::size(tree, disk).map(|bytes| bytes.0),
        scheduler: text("scheduler").map(chosen),
        queue_requests: number("nr_requests"),
        request_kib_max: number("max_sectors_kb"),
        write_cache: text("write_cache"),
        discard_bytes_max: number("discard_max_bytes"),
    }
}

fn filesystem(tree: &Tree, path: &Path, found: &Metadata, is_direct: bool) -> Option<FilesystemFacts> {
    let mounts = mounts::read(tree);
    let mount = mounts::around(&mounts, path)?;
    let space = ioctl::space(&mount.path).ok();
    Some(FilesystemFacts {
        fstype: mount.fstype.clone(),
        mount: mount.point.clone(),
        options: mount.options.clone(),
        size_bytes: space.map_or(0, |space| space.total.0),
        available_bytes: space.map_or(0, |space| space.available.0),
        in_memory: IN_MEMORY.contains(&mount.fstype.as_str()),
        cached: !is_direct,
        hole_bytes: if found.is_file() { found.len().saturating_sub(found.blocks() * 512) } else { 0 },
    })
}

fn host(tree: &Tree) -> HostFacts {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let model = ["/proc/device-tree/model", "/sys/class/dmi/id/product_name"].iter().find_map(|path| read(path));
    let cpus = tree.sys("devices/system/cpu");
    let governor = |name: &String| tree.attribute(&cpus.join(name).join("cpufreq"), "scaling_governor");
    let mut governors: Vec<String> = tree.names(&cpus).unwrap_or_default().iter().filter_map(governor).collect();
    governors.sort();
    governors.dedup();
    HostFacts {
        kernel: tree.read(&tree.proc("sys/kernel/osrelease")).unwrap_or_default(),
        machine: std::env::consts::ARCH.into(),
        model: model.map(|text| text.trim_end_matches(['\0', '\n']).to_owned()).filter(|text| !text.is_empty()),
        processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u32),
        governors,
    }
}

/// Room on the filesystem that a folder is on. Unit: bytes.
///
/// Errors: the kernel's.
pub fn available_bytes(folder: &Path) -> std::io::Result<u64> {
    Ok(ioctl::space(folder)?.available.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SysRoot;

    fn board(disk: &str) -> Context {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs/board");
        let mut context = Context::default();
        of_card(&SysRoot::new(tree, disk).read().unwrap(), &mut context);
        context
    }

    #[test]
    fn a_boards_emmc_has_its_bus_and_registers() {
        let context = board("mmcblk0");
        let bus = context.bus.unwrap();
        assert_eq!((bus.mode.as_str(), bus.lines, bus.clock_hz), ("mmc HS400 enhanced strobe", 8, 198_000_000));
        assert!((bus.mb_per_s_max - 396.0).abs() < 1e-9);
        let card = context.card.unwrap();
        assert_eq!((card.kind.as_deref(), card.name.as_deref()), (Some("emmc"), Some("BJNB4R")));
        assert_eq!(card.registers.get("EXT_CSD_REV"), Some(&8));
        assert!(card.registers.len() > 10, "{:?}", card.registers);
        assert_eq!(context.life_before.unwrap().type_a, Some(6));
    }

    #[test]
    fn the_bus_of_an_sd_card_has_single_data_rate() {
        let context = board("mmcblk1");
        assert!((context.bus.unwrap().mb_per_s_max - 25.0).abs() < 1e-9);
        assert_eq!((context.card.unwrap().kind.as_deref(), context.life_before), (Some("sd"), None));
    }

    #[test]
    fn a_file_of_this_machine_has_a_filesystem_and_a_host() {
        let context = context(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), None, true).unwrap();
        let filesystem = context.filesystem.unwrap();
        assert!(!filesystem.fstype.is_empty() && filesystem.size_bytes > 0 && !filesystem.cached, "{filesystem:?}");
        assert!(!context.host.unwrap().kernel.is_empty());
    }

    #[test]
    fn effort_is_the_difference_since_the_start() {
        let meter = Meter::default();
        let sum = (0..20_000_000u64).fold(0, |sum: u64, number| sum.wrapping_mul(31).wrapping_add(number));
        let effort = meter.effort();
        assert!(effort.user_s + effort.system_s > 0.0 && effort.time_s > 0.0, "{effort:?} {sum}");
    }
}
