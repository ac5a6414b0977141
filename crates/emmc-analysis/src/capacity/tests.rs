use emmc_port::{Disk, Filesystem, Format, Partition, StatedSize};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;

use super::*;
use crate::finding::Severity;

fn partition(name: &str, start: Option<u64>, bytes: u64, mount: Option<&str>) -> Partition {
    Partition {
        name: name.into(),
        start: start.map(Sectors),
        bytes: Some(Bytes(bytes)),
        kind: None,
        mount: mount.map(str::to_owned),
    }
}

fn disk(name: &str, bytes: u64, partitions: Vec<Partition>) -> Disk {
    Disk { name: name.into(), bytes: Some(Bytes(bytes)), read_only: None, partitions }
}

fn filesystem(device: &str, mount: &str, kib: [u64; 3]) -> Filesystem {
    let [bytes, used, available] = kib.map(|kib| Bytes(kib * 1024));
    Filesystem { device: device.into(), fstype: None, bytes, used, available, mount: mount.into() }
}

/// The board vendor's walk-through: `fdisk -l`, `lsblk -b` and `df` of one card.
fn walk_through() -> CardData {
    let mut card = CardData { kind: Some(CardKind::Emmc), ..CardData::new("lsblk", Format::BlockLayerText) };
    let first = partition("mmcblk0p1", Some(8192), 16_777_216, Some("/media/mmcblk0p1"));
    let second = partition("mmcblk0p2", Some(40_960), 3_829_399_552, Some("/"));
    card.blocks.disks = vec![
        disk("mmcblk0", 3_850_371_072, vec![second, first]),
        disk("mmcblk0boot0", 16_777_216, vec![]),
        disk("mmcblk0boot1", 16_777_216, vec![]),
    ];
    card.blocks.filesystems = vec![
        filesystem("/dev/root", "/", [3_615_352, 488_560, 2_923_428]),
        filesystem("tmpfs", "/tmp", [124_692, 4, 124_688]),
        filesystem("/dev/mmcblk0p1", "/media/mmcblk0p1", [16_116, 5_179, 10_937]),
    ];
    card
}

fn emmc(registers: &[(u16, u16, u64)]) -> CardData {
    let mut csd = ExtCsd::from_bytes([0; 512]);
    registers.iter().for_each(|&(offset, width, value)| csd.set_uint(offset, width, value));
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("part", Format::ExtCsdBinary) }
}

fn bytes_of(capacity: &Capacity, name: AreaName) -> Option<u64> {
    capacity.areas.iter().find(|area| area.name == name)?.size.bytes.map(|bytes| bytes.0)
}

fn ids(capacity: &Capacity) -> Vec<&str> {
    capacity.findings.iter().map(|finding| finding.id).collect()
}

#[test]
fn every_byte_of_the_board_vendors_card_is_accounted_for() {
    let capacity = capacity(&walk_through());
    assert_eq!(bytes_of(&capacity, AreaName::User), Some(3_850_371_072));
    assert_eq!(bytes_of(&capacity, AreaName::Boot2), Some(16_777_216));
    let accounted = capacity.accounted.clone().unwrap();
    assert_eq!(accounted.bytes, Some(Bytes(3_850_371_072 + 2 * 16_777_216)));
    assert_eq!(accounted.source, "sum of user area, boot area 1, boot area 2");
    assert_eq!(capacity.not_accounted, [AreaName::Rpmb]);

    let table = &capacity.tables[0];
    let slots: Vec<(Option<&str>, u64, u64)> =
        table.slots.iter().map(|slot| (slot.name.as_deref(), slot.start.unwrap().0, slot.bytes.unwrap().0)).collect();
    assert_eq!(
        slots,
        [(None, 0, 4_194_304), (Some("mmcblk0p1"), 8192, 16_777_216), (Some("mmcblk0p2"), 40_960, 3_829_399_552)]
    );
    assert_eq!(table.unpartitioned_bytes, Some(Bytes(4_194_304)));

    let [root, boot] = capacity.filesystems.as_slice() else { panic!("{:?}", capacity.filesystems) };
    assert_eq!((root.partition.as_str(), root.overhead_bytes), ("mmcblk0p2", Some(Bytes(127_279_104))));
    assert_eq!(root.reserved_bytes, Bytes(203_364 * 1024));
    assert!(root.overhead_percent.is_some_and(|percent| (3.32..3.33).contains(&percent)));
    assert_eq!((boot.partition.as_str(), boot.overhead_bytes), ("mmcblk0p1", Some(Bytes(16_777_216 - 16_116 * 1024))));
    assert_eq!(ids(&capacity), [""; 0]);
}

#[test]
fn registers_size_every_area() {
    // Board vendor's 16 GB part after making all of it enhanced: 939 groups of 8 MiB.
    let card = emmc(&[
        (192, 1, 8),
        (212, 4, 15_384_576),
        (224, 1, 1),
        (221, 1, 16),
        (226, 1, 252),
        (168, 1, 32),
        (155, 1, 1),
        (156, 1, 1),
        (140, 3, 939),
    ]);
    let capacity = capacity(&card);
    assert_eq!(bytes_of(&capacity, AreaName::User), Some(7512 << 20));
    assert_eq!(bytes_of(&capacity, AreaName::Boot1), Some(252 * 131_072));
    assert_eq!(bytes_of(&capacity, AreaName::Rpmb), Some(4 << 20));
    assert_eq!(bytes_of(&capacity, AreaName::Gp1), None);
    let user = &capacity.areas[0];
    assert_eq!(user.enhanced, Some(true));
    let size_bytes = Bytes(7512 << 20);
    assert_eq!(user.enhanced_part, Some(EnhancedPart { start_bytes: Bytes(0), size_bytes }));
    assert_eq!(capacity.accounted.unwrap().bytes, Some(Bytes((7512 << 20) + 2 * 252 * 131_072 + (4 << 20))));
    assert!(capacity.not_accounted.is_empty() && capacity.findings.is_empty());
}

#[test]
fn general_purpose_areas_exist_after_partitioning_is_completed() {
    let gp = |completed| {
        let card =
            emmc(&[(212, 4, 15_000_000), (224, 1, 1), (221, 1, 16), (143, 3, 4), (156, 1, 2), (155, 1, completed)]);
        let capacity = capacity(&card);
        capacity.areas.iter().find(|area| area.name == AreaName::Gp1).map(|area| (area.size.bytes, area.enhanced))
    };
    assert_eq!(gp(1), Some((Some(Bytes(32 << 20)), Some(true))));
    assert_eq!(gp(0), None);
}

#[test]
fn conflicting_sources_are_a_finding_and_rounded_text_is_an_interval() {
    let mut card = emmc(&[(212, 4, 15_384_576)]);
    card.blocks.disks = vec![disk("mmcblk1", 7512 << 20, vec![])];
    let stated = |text: &str, tenth: f64| {
        let edge = |gib: f64| Bytes((gib * f64::from(1 << 30)) as u64);
        Some(StatedSize { text: text.into(), min: edge(tenth - 0.05), max: edge(tenth + 0.05) })
    };
    card.stated.user_capacity = stated("7.3 GiB", 7.3);
    assert_eq!(ids(&capacity(&card)), [""; 0]);
    card.stated.user_capacity = stated("14.8 GiB", 14.8);
    card.blocks.disks[0].bytes = Some(Bytes(31_080_448 * 512));
    let capacity = capacity(&card);
    assert_eq!(ids(&capacity), ["capacity-disagreement"]);
    assert_eq!(capacity.findings[0].evidence.len(), 3);
    assert!(capacity.findings[0].evidence[0].text.starts_with("EXT_CSD SEC_COUNT: 7876902912 bytes"));

    let mut rounded = CardData { kind: Some(CardKind::Emmc), ..CardData::default() };
    rounded.stated.user_capacity = stated("3.7 GiB", 3.7);
    let only = super::capacity(&rounded);
    assert!(only.areas[0].size.bytes.is_none() && only.areas[0].size.max_bytes.is_some() && only.accounted.is_none());
}

#[test]
fn the_card_of_the_right_size_is_chosen() {
    let mut card = emmc(&[(212, 4, 8192)]);
    card.blocks.disks = vec![
        disk("mmcblk0", 8192 * 512, vec![partition("mmcblk0p1", Some(1), 512, None)]),
        disk("mmcblk01", 1 << 30, vec![partition("mmcblk01p1", Some(1), 512, None)]),
        disk("sda", 8192 * 512, vec![]),
    ];
    let known = capacity(&card);
    assert_eq!(known.tables.len(), 1);
    assert_eq!(known.tables[0].disk, "mmcblk0");
    card.ext_csd = None;
    assert_eq!(ids(&capacity(&card)), ["which-disk"]);
}

#[test]
fn tables_that_do_not_fit_are_reported() {
    let of = |parts: Vec<Partition>| {
        let mut card = emmc(&[(212, 4, 1_000_000), (224, 1, 1), (221, 1, 16), (175, 1, 1)]);
        card.blocks.disks = vec![disk("mmcblk0", 512_000_000, parts)];
        capacity(&card)
    };
    let past = of(vec![partition("mmcblk0p1", Some(16_384), 512_000_000, None)]);
    assert_eq!((ids(&past), past.findings[0].severity), (vec!["partition-past-end"], Severity::Critical));
    let overlapping = of(vec![
        partition("mmcblk0p1", Some(16_384), 16 << 20, None),
        partition("mmcblk0p2", Some(32_768), 16 << 20, None),
    ]);
    assert_eq!(ids(&overlapping), ["partition-overlap"]);
    let dos =
        of(vec![partition("mmcblk0p1", Some(63), 16 << 20, None), partition("mmcblk0p2", Some(65_536), 1 << 20, None)]);
    assert_eq!(ids(&dos), ["partition-off-page", "partition-off-group"]);
    assert!(
        dos.findings[1].evidence[0].text.contains("31.5 KiB past a multiple of the erase group of 512 KiB"),
        "{:?}",
        dos.findings
    );
    assert_eq!(dos.findings[1].evidence.len(), 1);
}

#[test]
fn an_extended_partition_frames_and_does_not_overlap() {
    let mut frame = partition("mmcblk0p4", Some(16_384), 64 << 20, None);
    frame.kind = Some("f W95 Ext'd (LBA) Extended".into());
    let logical = partition("mmcblk0p5", Some(32_768), 16 << 20, None);
    let mut card = emmc(&[(212, 4, 200_000)]);
    card.blocks.disks = vec![disk("mmcblk0", 200_000 * 512, vec![frame, logical])];
    let capacity = capacity(&card);
    assert_eq!(ids(&capacity), [""; 0]);
    assert_eq!(capacity.tables[0].unpartitioned_bytes, Some(Bytes(200_000 * 512 - (16 << 20))));
}

#[test]
fn without_starts_only_the_sum_is_reported() {
    let mut card = walk_through();
    for partition in &mut card.blocks.disks[0].partitions {
        partition.start = None;
    }
    let capacity = capacity(&card);
    assert!(capacity.tables[0].slots.iter().all(|slot| slot.name.is_some() && slot.alignment.is_empty()));
    assert_eq!(capacity.tables[0].unpartitioned_bytes, Some(Bytes(4_194_304)));
}

#[test]
fn partitions_that_cannot_fit_are_reported_with_numbers() {
    let of = |sizes: &[u64]| {
        let parts =
            sizes.iter().zip(1..).map(|(size, number)| partition(&format!("mmcblk0p{number}"), None, *size, None));
        let mut card = CardData { kind: Some(CardKind::Emmc), ..CardData::new("lsblk", Format::BlockLayerText) };
        card.blocks.disks = vec![disk("mmcblk0", 1000 * 512, parts.collect())];
        capacity(&card).findings
    };
    let one = of(&[2000 * 512, 512]);
    assert_eq!((one.len(), one[0].id, one[0].severity), (1, "partition-larger-than-disk", Severity::Warning));
    assert_eq!(one[0].evidence.texts(), ["mmcblk0p1: 1024000 bytes, mmcblk0: 512000"]);
    let together = of(&[600 * 512, 600 * 512]);
    assert_eq!(together[0].evidence.texts(), ["2 partitions: 614400 bytes in all, mmcblk0: 512000"]);
    assert_eq!(of(&[500 * 512, 500 * 512]), []);
    assert_eq!(of(&[u64::MAX, u64::MAX]).len(), 1);
}

#[test]
fn an_sd_card_is_sized_by_its_csd() {
    let csd = emmc_regs::csd::Csd::parse_hex(CardKind::Sd, "400e00325b59000073a77f800a4000eb").unwrap();
    let card = CardData { kind: Some(CardKind::Sd), csd: Some(csd.bytes), ..CardData::default() };
    let capacity = capacity(&card);
    assert_eq!(bytes_of(&capacity, AreaName::User), Some(15_523_119_104));
    assert_eq!((capacity.areas.len(), capacity.not_accounted.len()), (1, 0));
}
