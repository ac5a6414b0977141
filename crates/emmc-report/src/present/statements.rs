//! Statements of a source apart from registers: other tools' text, attributes, disks, reports.

use emmc_port::{Disk, Snapshot, StatedSize, VendorFormat};
use emmc_units::Bytes;

use crate::{Document, KeyValue, Tone};

/// Adds the sources' statements in text; if they have no register, everything else that they have.
pub(super) fn sections(card: &Snapshot, has_registers: bool, document: &mut Document) {
    let mut pairs = stated(card);
    if !has_registers {
        pairs.extend(card.sysfs.iter().map(|(name, value)| KeyValue::new(format!("sysfs {name}"), value.as_str())));
        pairs.extend(card.host.ios.iter().map(|(name, value)| KeyValue::new(format!("host {name}"), value.as_str())));
        pairs.extend(card.blocks.disks.iter().flat_map(disk));
        pairs.extend(card.blocks.filesystems.iter().map(|filesystem| {
            let used = format!("{} of {} used, on {}", filesystem.used, filesystem.bytes, filesystem.device);
            KeyValue::new(format!("filesystem {}", filesystem.mount), used)
        }));
        pairs.extend(card.reports.iter().map(|report| {
            let what = match &report.format {
                VendorFormat::Emmcparm => "emmcparm's text".to_owned(),
                VendorFormat::Sdmon => "sdmon's text".to_owned(),
                VendorFormat::Reply { family: Some(family), .. } => format!("a reply of {family}'s command"),
                VendorFormat::Reply { family: None, .. } => "a vendor command's reply".to_owned(),
            };
            KeyValue::new("vendor health report", format!("{what}; emmclab health decodes it"))
        }));
    }
    if pairs.is_empty() && has_registers {
        return;
    }
    let section = document.section("statements", "Statements in text");
    if !has_registers {
        section.note(Tone::Notice, "This source has no registers. What it has:");
    }
    if pairs.is_empty() {
        section.paragraph("Nothing about the card.");
    } else {
        section.push(pairs);
    }
}

/// Statements in text without their register.
fn stated(card: &Snapshot) -> Vec<KeyValue> {
    let stated = &card.stated;
    let size = |size: &Option<StatedSize>| size.as_ref().map(stated_size);
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.to_string());
    let rows = [
        ("manufacturer id", stated.manufacturer_id.map(|id| format!("{id:#04x}"))),
        ("OEM id", stated.oem_id.map(|id| format!("{id:#06x}"))),
        ("product name", stated.name.clone()),
        ("serial number", stated.serial.map(|serial| format!("{serial:#010x}"))),
        ("date as printed", stated.date.clone()),
        ("version of the MMC standard", stated.mmc_version.clone()),
        ("version of the SD specification", stated.sd_version.clone()),
        ("bus clock", stated.bus_speed_hz.map(|hz| format!("{hz} Hz"))),
        ("bus mode", stated.bus_mode.clone()),
        ("bus width", stated.bus_width.clone()),
        ("capacity", size(&stated.user_capacity)),
        ("write-protect group", bytes(stated.hc_wp_group)),
        ("erase group in force", bytes(stated.erase_group)),
        ("enhanced user area", size(&stated.enh_user_size)),
        ("largest enhanced area", bytes(stated.max_enh_size)),
    ];
    rows.into_iter().filter_map(|(name, value)| Some(KeyValue::new(name, value?))).collect()
}

/// As printed, with the exact number where the text gave it.
fn stated_size(size: &StatedSize) -> String {
    if size.min == size.max { format!("{} ({} bytes)", size.text, size.min.0) } else { size.text.clone() }
}

fn disk(disk: &Disk) -> Vec<KeyValue> {
    let size =
        |bytes: Option<Bytes>| bytes.map_or("size unknown".to_owned(), |bytes| format!("{bytes} ({} bytes)", bytes.0));
    let read_only = if disk.read_only == Some(true) { ", read only" } else { "" };
    let mut pairs = vec![KeyValue::new(format!("disk {}", disk.name), format!("{}{read_only}", size(disk.bytes)))];
    pairs.extend(disk.partitions.iter().map(|partition| {
        let mount = partition.mount.as_ref().map_or(String::new(), |mount| format!(", mounted on {mount}"));
        KeyValue::new(format!("partition {}", partition.name), format!("{}{mount}", size(partition.bytes)))
    }));
    pairs
}

#[cfg(test)]
mod tests {
    use emmc_analysis::registers::Registers;
    use emmc_port::saved;

    use crate::present::registers;
    use crate::{TextOptions, text};

    fn shown(source: &str) -> String {
        let card = saved::read("f", source.as_bytes()).unwrap();
        text(
            &registers(&Registers::new(&card, false), false, true),
            &TextOptions { width: 100, colour: false, unicode: true },
        )
    }

    #[test]
    fn a_source_without_registers_lists_its_content() {
        for (source, expected) in [
            ("0x01 0x0b\n", &["This source has no registers", "sysfs life_time", "0x01 0x0b"][..]),
            (
                "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nmmcblk0 179:0 0 4096 0 disk\n├─mmcblk0p1 179:1 0 512 0 part /boot\n",
                &["disk mmcblk0", "4 KiB (4096 bytes)", "partition mmcblk0p1", "mounted on /boot"],
            ),
            (
                "type: 'SD'\ncapacity: 14.46Gbyte (15523119104 bytes, 30318592 sectors, 512 bytes each)\ncard classes: 0 basic\n",
                &["capacity", "14.46Gbyte (15523119104 bytes)"],
            ),
            (
                "{\n\"version\": \"v\",\n\"device\": \"d\",\n\"flashId\": [\"0x98\"],\n\"powerUpCount\": 1\n}",
                &["vendor health report", "sdmon's text"],
            ),
        ] {
            let text = shown(source);
            for part in expected {
                assert!(text.contains(part), "{part:?} is not in:\n{text}");
            }
        }
    }

    #[test]
    fn registers_alone_need_no_statements() {
        assert!(!shown("cid: 1501004d384731474303dc0db061506f\n").contains("Statements in text"));
        let both = shown(
            "Manufacturer ID: 45\nOEM: 100\nName: DG403 \nBus Speed: 52000000\nMode: HS200\nRd Block Len: 512\nMMC version 5.1\n\
             High Capacity: Yes\nCapacity: 29.1 GiB\nBus Width: 8-bit\nErase Group Size: 512 KiB\nHC WP Group Size: 8 MiB\n\
             User Capacity: 29.1 GiB\nBoot Capacity: 4 MiB ENH\nRPMB Capacity: 4 MiB ENH\n",
        );
        for part in ["EXT_CSD_REV", "write-protect group", "8 MiB", "bus mode", "HS200"] {
            assert!(both.contains(part), "{part}\n{both}");
        }
    }
}
