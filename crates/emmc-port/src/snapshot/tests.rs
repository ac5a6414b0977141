use super::*;
use crate::{Disk, Filesystem, Format, Partition, StatedSize};
use emmc_units::{Bytes, Sectors};

/// An EXT_CSD that a card could have.
fn registers() -> [u8; EXT_CSD_BYTES] {
    let mut bytes = [0; EXT_CSD_BYTES];
    for (offset, value) in [(0, 0x81), (2, 0x7f), (192, 8), (194, 2), (196, 0x57), (212, 1), (504, 1)] {
        bytes[offset] = value;
    }
    bytes
}

/// Data with something in every field.
fn everything() -> CardData {
    let size = StatedSize { text: "7.3 GiB".into(), min: Bytes(1), max: Bytes(2) };
    let mut data = CardData::new("/dev/mmcblk0", Format::Live);
    data.note("as of the last probe");
    data.conflicts.push("the sources disagree".into());
    data.origins[0].taken_at = Some("2026-11-21T07:00:00Z".into());
    data.kind = Some(CardKind::Emmc);
    data.cid = Cid::parse_hex("1501004d384731474303dc0db061506f").ok();
    data.csd = Some([0xd0, 0x27, 1, 0x32, 0x0f, 0x59, 3, 0xff, 0xf6, 0xdb, 0xff, 0xef, 0x8e, 0x40, 0x40, 0x0d]);
    data.ext_csd = Some(ExtCsd::from_bytes(registers()));
    (data.ocr, data.rca, data.status) = (Some(0xc0ff_8080), Some(1), Some(0x900));
    data.scr = Some([2, 0x35, 0x80, 0x43, 0, 0, 0, 0]);
    data.ssr = Some([0x5a; 64]);
    data.sysfs.insert("life_time".into(), "0x01 0x02".into());
    data.host.ios.insert("clock".into(), "200000000 Hz".into());
    data.host.err_stats.insert("Command CRC Errors".into(), 3);
    let partition = Partition { name: "mmcblk0p1".into(), start: Some(Sectors(8192)), ..Partition::default() };
    let disk =
        Disk { name: "mmcblk0".into(), bytes: Some(Bytes(512)), read_only: Some(true), partitions: vec![partition] };
    data.blocks.disks.push(disk);
    data.blocks.filesystems.push(Filesystem { device: "/dev/root".into(), mount: "/".into(), ..Filesystem::default() });
    data.stated = Stated {
        manufacturer_id: Some(0x15),
        oem_id: Some(0x100),
        name: Some("8G1GC".into()),
        serial: Some(7),
        date: Some("05/2013".into()),
        mmc_version: Some("5.1".into()),
        sd_version: Some("3.0".into()),
        bus_speed_hz: Some(52_000_000),
        bus_mode: Some("HS200".into()),
        bus_width: Some("8-bit".into()),
        user_capacity: Some(size.clone()),
        hc_wp_group: Some(Bytes(8 << 20)),
        erase_group: Some(Bytes(1 << 19)),
        enh_user_size: Some(size),
        max_enh_size: Some(Bytes(1 << 33)),
    };
    let reply = VendorFormat::Reply { family: Some("micron".into()), argument: Some(0x11) };
    for format in [VendorFormat::Emmcparm, VendorFormat::Sdmon, reply] {
        data.reports.push(SavedReport { format, content: vec![0, 0xff, 0x0a] });
    }
    data
}

fn round_trip(data: &CardData) {
    let snapshot = Snapshot::new(data, "0.1.0", Some("2026-11-21T07:00:00Z".into()));
    let json = serde_json::to_string(&snapshot).unwrap();
    assert!(json.starts_with("{\"schema\":\"emmclab.snapshot/1\",\"tool\":\"0.1.0\""), "{json}");
    let read: Snapshot = serde_json::from_str(&json).unwrap();
    assert_eq!(read, snapshot);
    assert_eq!(CardData::try_from(read).unwrap(), *data);
}

#[test]
fn a_snapshot_round_trips() {
    round_trip(&everything());
    round_trip(&CardData::default());
    let mut partial = CardData::default();
    let mut ext_csd = ExtCsd::unknown();
    ext_csd.set_bits(167, 1, 1);
    ext_csd.set_uint(212, 4, 0xe9_0000);
    partial.ext_csd = Some(ext_csd);
    round_trip(&partial);
}

#[test]
fn keys_of_a_newer_version_are_ignored_and_missing_ones_are_unknown() {
    let json = r#"{"schema": "emmclab.snapshot/1", "rca": 1, "new_key": {"a": []}}"#;
    let data = CardData::try_from(serde_json::from_str::<Snapshot>(json).unwrap()).unwrap();
    assert_eq!(data, CardData { rca: Some(1), ..CardData::default() });
}

#[test]
fn registers_are_hex_digits_and_a_mask_is_written_if_needed() {
    let snapshot = Snapshot::from(&everything());
    assert_eq!(snapshot.cid.as_deref(), Some("1501004d384731474303dc0db061506f"));
    assert_eq!(snapshot.ext_csd.as_deref().map(|digits| &digits[..8]), Some("81007f00"));
    assert_eq!(snapshot.ext_csd_known, None);
    assert_eq!(snapshot.reports[0].content, "00ff0a");
}

#[test]
fn other_versions_and_other_json_are_refused() {
    let error = |change: fn(&mut Snapshot)| {
        let mut snapshot = Snapshot::from(&everything());
        change(&mut snapshot);
        CardData::try_from(snapshot).unwrap_err().to_string()
    };
    for (message, expected) in [
        (
            error(|snapshot| snapshot.schema = "emmclab.snapshot/2".into()),
            "schema \"emmclab.snapshot/2\" is not \"emmclab.snapshot/1\", the one that this version reads; a newer emmclab may",
        ),
        (error(|snapshot| snapshot.csd = Some("12".into())), "csd has 2 digits; expected 32 hexadecimal digits"),
        (error(|snapshot| snapshot.scr = Some("x".repeat(16))), "scr has 'x'; expected 16 hexadecimal digits"),
        (
            error(|snapshot| snapshot.ext_csd_known = Some(String::new())),
            "ext_csd_known has 0 digits; expected 1024 hexadecimal digits",
        ),
        (
            error(|snapshot| snapshot.reports[1].content = "123".into()),
            "reports.content has 3 digits; expected an even number of hexadecimal digits",
        ),
    ] {
        assert_eq!(message, expected);
    }
}

#[test]
fn impossible_registers_are_refused_as_in_a_binary_file() {
    let read = |bytes: [u8; EXT_CSD_BYTES]| {
        let data = CardData { ext_csd: Some(ExtCsd::from_bytes(bytes)), ..CardData::default() };
        crate::saved::read("s", &serde_json::to_vec(&Snapshot::from(&data)).unwrap()).map_err(|error| error.to_string())
    };
    let mut revision = registers();
    revision[192] = 99;
    for (bytes, message) in [
        ([0xff; EXT_CSD_BYTES], "ext_csd, byte 0, has 0xff 512 times; expected EXT_CSD"),
        ([0; EXT_CSD_BYTES], "ext_csd, byte 0, has 0x00 512 times; expected EXT_CSD"),
        (revision, "ext_csd, byte 192, has 0x63; expected EXT_CSD_REV from 0 to 9"),
    ] {
        assert_eq!(read(bytes), Err(format!("s: at byte 0: expected a snapshot of emmclab, found {message}")));
    }
    assert_eq!(read(registers()).unwrap().ext_csd.unwrap().bytes(), &registers());
}

#[test]
fn a_saved_snapshot_names_itself_as_origin() {
    let snapshot = Snapshot::new(&everything(), "0.1.0", Some("2026-11-21T08:00:00Z".into()));
    let data = crate::saved::read("monday.json", &serde_json::to_vec_pretty(&snapshot).unwrap()).unwrap();
    let origin = &data.origins[0];
    assert_eq!((data.name(), origin.format), ("monday.json".into(), Format::Snapshot));
    assert_eq!(origin.taken_at.as_deref(), Some("2026-11-21T08:00:00Z"));
    assert_eq!(origin.notes, ["taken from /dev/mmcblk0", "as of the last probe"]);
    assert_eq!(CardData { origins: everything().origins, ..data }, everything());
}
