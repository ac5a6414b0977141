use emmc_port::{Format, MountedOn, Stack, TrimServices};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{ExtCsd, reg};

use super::*;

fn layer(name: &str, kind: LayerKind, below: &str, max: u64) -> Layer {
    let below = Some(below.to_owned()).filter(|below| !below.is_empty()).into_iter().collect();
    Layer { name: name.into(), kind, below, discard_max_bytes: Some(max), ..Layer::default() }
}

/// ext4 on LVM on dm-crypt on a partition, with the limits of the crypt layer and of the disk.
fn stack(crypt: u64, disk: u64, options: &str) -> Stack {
    let mut top = layer("dm-1", LayerKind::Lvm, "dm-0", crypt);
    let options = options.split(',').map(str::to_owned).collect();
    top.mounted = Some(MountedOn { point: "/data".into(), fstype: "ext4".into(), options, ..MountedOn::default() });
    (top.written_bytes, top.discarded_bytes) = (Some(1 << 30), Some(0));
    let mut dm = layer("dm-0", LayerKind::Crypt, "mmcblk0p1", crypt);
    dm.mapped_name = Some("secret".into());
    let layers = vec![
        layer("mmcblk0", LayerKind::Disk, "", disk),
        layer("mmcblk0p1", LayerKind::Partition, "mmcblk0", disk),
        dm,
        top,
    ];
    Stack { layers, services: TrimServices { fstrim_timer: Some(false), ..TrimServices::default() } }
}

fn card(rev: u8, features: u8) -> CardData {
    let mut csd = ExtCsd::unknown();
    csd.set_raw(reg::EXT_CSD_REV, rev.into());
    csd.set_raw(reg::SEC_FEATURE_SUPPORT, features.into());
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("x", Format::Live) }
}

fn named_part(mid: u8, oem: u16, name: &str) -> CardData {
    let mut cid = [0; 16];
    cid[0] = mid;
    cid[1..3].copy_from_slice(&oem.to_be_bytes());
    cid[3..3 + name.len()].copy_from_slice(name.as_bytes());
    CardData { cid: Some(Cid(cid)), ..card(5, 0x15) }
}

fn ids(status: &TrimStatus) -> Vec<&'static str> {
    status.findings.iter().map(|finding| finding.id).collect()
}

#[test]
fn the_lowest_layer_that_stops_discards_is_named() {
    let status = trim_status(Some(&card(8, 0x15)), stack(0, 1 << 30, "rw"), None, None);
    assert_eq!(status.reach[0].blocked_by.as_deref(), Some("dm-0"));
    assert_eq!(status.verdict, "dm-0 (secret, dm-crypt) stops the discards of /data");
    assert_eq!((ids(&status), status.severity), (vec!["trim-blocked"], Severity::Warning));
    assert!(status.findings[0].commands[0].command.contains("--allow-discards --persistent secret"));
    let open = trim_status(Some(&card(8, 0x15)), stack(1 << 30, 1 << 30, "rw,discard"), None, None);
    assert_eq!((ids(&open), open.severity), (vec!["trim-good"], Severity::Good));
    assert_eq!(open.verdict, "Discards of /data reach the card as DISCARD");
}

#[test]
fn a_volume_with_the_limits_of_an_earlier_time_loads_its_table_again() {
    let blocked = |below| {
        let mut stack = stack(0, 1 << 30, "rw");
        let layer = stack.layers.iter_mut().find(|layer| layer.kind == LayerKind::Crypt).unwrap();
        layer.kind = LayerKind::Lvm;
        let disk = layer.below[0].clone();
        stack.layers.iter_mut().find(|layer| layer.name == disk).unwrap().discard_max_bytes = below;
        trim_status(Some(&card(8, 0x15)), stack, None, None).findings[0].commands[0].command.clone()
    };
    assert_eq!(blocked(Some(1 << 30)), "dmsetup table secret | dmsetup load secret && dmsetup resume secret");
    assert_eq!(blocked(None), "dmsetup table secret");
}

#[test]
fn a_disk_that_sends_nothing_is_not_blamed_on_a_layer_above() {
    let mut stack = stack(0, 0, "rw");
    stack.layers[0].discard_max_hw_bytes = Some(4096);
    let status = trim_status(Some(&card(8, 0x15)), stack, None, None);
    assert_eq!((ids(&status), status.reach[0].blocked_by.as_deref()), (vec!["trim-host-off"], Some("mmcblk0")));
    assert!(status.findings[0].commands[0].command.starts_with("echo 4096 >"));
}

#[test]
fn nobody_trims_is_a_finding_with_what_was_written() {
    let status = trim_status(None, stack(1 << 30, 1 << 30, "rw"), None, None);
    assert_eq!(ids(&status), ["trim-nobody"]);
    assert!(status.findings[0].evidence.texts().iter().any(|text| text.contains("1.0 GiB written, nothing discarded")));
    assert!(ids(&trim_status(None, stack(1 << 30, 1 << 30, "ro"), None, None)).iter().all(|id| *id != "trim-nobody"));
}

#[test]
fn the_timer_passes_over_what_fstab_does_not_name() {
    let mut stack = stack(1 << 30, 1 << 30, "rw");
    stack.services.fstrim_timer = Some(true);
    let listed = MountedOn { point: "/".into(), fstab_options: Some(Vec::new()), ..MountedOn::default() };
    stack.layers[1].mounted = Some(listed);
    let status = trim_status(None, stack, None, None);
    let by: Vec<_> = status.reach.iter().map(|reach| reach.trimmed_by.len()).collect();
    assert_eq!(
        (by, status.verdict.as_str()),
        (vec![1, 0], "Nobody trims /data: the card keeps what was deleted there")
    );
}

#[test]
fn a_source_without_limits_is_unknown() {
    let mut stack = stack(1 << 30, 1 << 30, "rw,discard");
    stack.layers.iter_mut().for_each(|layer| layer.discard_max_bytes = None);
    let status = trim_status(None, stack, None, None);
    assert_eq!((ids(&status), status.reach[0].reaches), (vec!["trim-unknown"], None));
}

#[test]
fn a_timer_that_does_not_run_is_stale() {
    let mut stack = stack(1 << 30, 1 << 30, "rw");
    stack.services.fstrim_timer = Some(true);
    stack.services.fstrim_last_run = Some("2026-01-01T00:00:00Z".into());
    let at = |time: &str| time.parse::<jiff::Timestamp>().unwrap();
    let status = |now: &str| trim_status(None, stack.clone(), None, Some(at(now)));
    assert_eq!(ids(&status("2026-01-12T00:00:00Z")), ["trim-good"]);
    assert_eq!(status("2026-03-01T00:00:00Z").verdict, "fstrim.timer is enabled and last ran 59 days ago");
}

#[test]
fn a_card_that_ignores_discards_is_named() {
    let obedience = |obeys| Some(Obedience { obeys, tested: "probe".into(), seen: "x".into() });
    let status = |obeys| trim_status(None, stack(1 << 30, 1 << 30, "rw,discard"), obedience(obeys), None);
    assert_eq!(ids(&status(Some(false))), ["trim-ignored"]);
    assert_eq!(ids(&status(Some(true))), ["trim-obeyed", "trim-good"]);
    assert_eq!(ids(&status(None)), ["trim-untold", "trim-good"]);
}

#[test]
fn the_kernels_choice_follows_revision_features_and_quirks() {
    let name = |card: &CardData| kernel_command(card).map(|command| (command.name, command.argument, command.secure));
    assert_eq!(name(&card(8, 0x15)), Some(("discard", Some(3), true)));
    assert_eq!(name(&card(6, 0x00)), Some(("discard", Some(3), false)));
    assert_eq!(name(&card(5, 0x10)), Some(("trim", Some(1), false)));
    assert_eq!(name(&card(5, 0x01)), Some(("erase", Some(0), true)));
    assert_eq!(name(&named_part(0x70, 0, "V10008")), Some(("erase", Some(0), true)));
    assert_eq!(name(&named_part(0x15, 0, "MAG4FA")), Some(("trim", Some(1), false)));
    assert_eq!(name(&CardData { ext_csd: None, ..card(8, 0) }), None);
    let mut no_erase = card(8, 0x15);
    no_erase.csd = Some([0; 16]);
    assert_eq!(name(&no_erase), Some(("none", None, false)));
}

#[test]
fn known_bad_parts_match_name_maker_and_oem() {
    let found = |card: &CardData| known_bad(card).iter().map(|bad| bad.defect).collect::<Vec<_>>();
    assert_eq!(found(&named_part(0x70, 0x1234, "V10016")), [Defect::Trim]);
    assert_eq!(found(&named_part(0x13, 0x014e, "Q2J54A")), [Defect::Trim]);
    assert_eq!(found(&named_part(0x13, 0x0100, "Q2J54A")), []);
    assert_eq!(found(&named_part(0x15, 0, "V10016")), []);
    let status = trim_status(Some(&named_part(0x70, 0, "V10008")), stack(1 << 30, 1 << 30, "rw,discard"), None, None);
    let found = status.findings.iter().find(|finding| finding.id == "trim-known-bad").unwrap();
    assert!(found.evidence.texts()[0].contains("MMC_QUIRK_TRIM_BROKEN (Linux drivers/mmc/core/quirks.h)"));
}

#[test]
fn advice_fits_the_system_and_quotes_names() {
    let mut stack = stack(1 << 30, 1 << 30, "rw");
    stack.layers[3].mounted.as_mut().unwrap().point = "/my 'data' 5%".into();
    let status = trim_status(None, stack, None, None);
    let own = trim_advice(&status, true, true);
    assert_eq!((own.command.as_deref(), own.files.len()), (Some("systemctl enable --now fstrim.timer"), 0));
    let units = trim_advice(&status, true, false);
    assert!(units.files[0].text.contains("sh \"/my 'data' 5%%\"\n"), "{}", units.files[0].text);
    let cron = trim_advice(&status, false, false);
    assert_eq!(cron.files[0].text.lines().last(), Some("fstrim '/my '\\''data'\\'' 5%'"));
    assert!(cron.files[0].is_program && cron.fstab[0].with_discard == "defaults,discard");
    let done = trim_status(None, self::stack(1 << 30, 1 << 30, "rw,discard"), None, None);
    assert!(trim_advice(&done, true, true).what.starts_with("Nothing to do"));
}

/// An open way to the card, with one thing changed.
fn findings_of(change: impl FnOnce(&mut Stack)) -> Vec<Finding> {
    let mut stack = stack(1 << 30, 1 << 30, "rw,discard");
    change(&mut stack);
    trim_status(Some(&card(8, 0x15)), stack, None, None).findings
}

fn findings_of_card(card: &CardData) -> Vec<Finding> {
    trim_status(Some(card), stack(1 << 30, 1 << 30, "rw,discard"), None, None).findings
}

fn tested(obeys: Option<bool>) -> Vec<Finding> {
    let obedience = Obedience { obeys, tested: "probe".into(), seen: "x".into() };
    trim_status(None, stack(1 << 30, 1 << 30, "rw,discard"), Some(obedience), None).findings
}

/// An id, and the findings with the fault or without it.
pub(crate) type Case = (&'static str, fn(bool) -> Vec<Finding>);

/// Each finding, with the fault and without it.
pub(crate) const CASES: [Case; 16] = [
    ("trim-blocked", |fault| {
        trim_status(None, stack(if fault { 0 } else { 1 << 30 }, 1 << 30, "rw"), None, None).findings
    }),
    ("trim-by-erase", |fault| findings_of_card(&card(5, if fault { 0x01 } else { 0x10 }))),
    ("trim-crypttab", |fault| {
        findings_of(|stack| {
            let names = || ["secret".to_owned()].into_iter().collect();
            (stack.services.crypttab, stack.services.crypttab_discard) = (names(), names());
            stack.layers[2].discard_max_bytes = Some(if fault { 0 } else { 1 << 30 });
        })
    }),
    ("trim-filesystem", |fault| {
        findings_of(|stack| {
            let mounted = stack.layers[3].mounted.as_mut().unwrap();
            mounted.fstype = if fault { "ext2" } else { "f2fs" }.into();
        })
    }),
    ("trim-good", |is_open| {
        findings_of(|stack| stack.layers[0].discard_max_bytes = Some(if is_open { 1 << 30 } else { 0 }))
    }),
    ("trim-host-off", |fault| {
        findings_of(|stack| stack.layers[0].discard_max_bytes = Some(if fault { 0 } else { 1 << 30 }))
    }),
    ("trim-ignored", |fault| tested(Some(!fault))),
    ("trim-obeyed", |obeys| tested(Some(obeys))),
    ("trim-untold", |fault| tested(if fault { None } else { Some(true) })),
    ("trim-known-bad", |fault| findings_of_card(&named_part(if fault { 0x70 } else { 0x15 }, 0, "V10008"))),
    ("trim-lvm", |fault| findings_of(|stack| stack.services.lvm_issue_discards = Some(!fault))),
    ("trim-no-command", |fault| findings_of_card(&CardData { csd: fault.then_some([0; 16]), ..card(8, 0x15) })),
    ("trim-nobody", |fault| {
        trim_status(None, stack(1 << 30, 1 << 30, if fault { "rw" } else { "ro" }), None, None).findings
    }),
    ("trim-timer-stale", |fault| {
        let mut stack = stack(1 << 30, 1 << 30, "rw");
        stack.services.fstrim_timer = Some(true);
        stack.services.fstrim_last_run = Some("2026-01-01T00:00:00Z".into());
        let now = if fault { "2026-01-17T00:00:00Z" } else { "2026-01-15T00:00:00Z" };
        trim_status(None, stack, None, now.parse().ok()).findings
    }),
    ("trim-unaligned", |fault| {
        findings_of(|stack| {
            stack.layers[1].discard_granularity_bytes = Some(4 << 20);
            stack.layers[1].start_sectors = Some(if fault { 2048 } else { 8192 });
        })
    }),
    ("trim-unknown", |fault| {
        findings_of(|stack| {
            if fault {
                stack.layers.iter_mut().for_each(|layer| layer.discard_max_bytes = None);
            }
        })
    }),
];
