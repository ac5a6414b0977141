//! A copied /sys as a source.

use std::path::{Path, PathBuf};

use emmc_port::{CardData, Format, SourceError};

use crate::gather;
use crate::tree::Tree;
use crate::{card_name, sysfs};

/// One card of a copied tree: `DIR/sys`, `DIR/proc`, or a copied `/sys` itself.
#[derive(Clone, Debug)]
pub struct SysRoot {
    folder: PathBuf,
    source: String,
}

impl SysRoot {
    /// The card that was `/dev/mmcblkN` where the tree was copied.
    pub fn new(folder: impl AsRef<Path>, source: impl Into<String>) -> Self {
        Self { folder: folder.as_ref().to_path_buf(), source: source.into() }
    }
}

impl SysRoot {
    /// Reads all values of the copy.
    ///
    /// Errors: there is no such card in it, or a file of it cannot be read.
    pub fn read(&self) -> Result<CardData, SourceError> {
        let tree = Tree::copied(&self.folder)?;
        let place = self.folder.display().to_string();
        let part = self.source.rsplit('/').next().unwrap_or_default();
        let disk = card_name::disk_of(part).filter(|disk| tree.names(&tree.block(disk)).is_ok());
        let disk = disk.ok_or_else(|| gather::no_such_card(&tree, &self.source, &place))?;
        let mut data = CardData::new(format!("{place}: {}", self.source), Format::SysRoot);
        if part != disk {
            sysfs::note(&mut data, [format!("{part} is a part of the card {disk}, which is read as a whole")]);
        }
        if let Some(debugfs) = gather::gather(&tree, disk, &mut data) {
            gather::registers_of_debugfs(&tree, &debugfs, &mut data);
        }
        if data.ext_csd.is_none() {
            gather::ext_csd_of_sysfs(&mut data);
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_regs::CardKind;

    fn read(tree: &str, source: &str) -> Result<CardData, SourceError> {
        SysRoot::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs").join(tree), source).read()
    }

    #[test]
    fn an_emmc_is_read_completely() {
        let data = read("board", "/dev/mmcblk0").unwrap();
        assert_eq!((data.kind, data.rca, data.status), (Some(CardKind::Emmc), Some(1), Some(0x900)));
        let ext_csd = data.ext_csd.unwrap();
        assert!(ext_csd.is_complete());
        assert_eq!((ext_csd.byte(192), ext_csd.uint(212, 4)), (Some(8), Some(61_071_360)));
        assert_eq!(data.host.ios.get("timing spec").map(String::as_str), Some("10 (mmc HS400 enhanced strobe)"));
        assert_eq!(data.host.err_stats.get("Data CRC Errors Occurred"), Some(&2));
        assert_eq!(data.sysfs.get("date").map(String::as_str), Some("01/2017"));
        assert!(!data.sysfs.contains_key("enhanced_area_offset"));
        assert_eq!(data.origins[0].notes, Vec::<String>::new());
    }

    #[test]
    fn an_sd_card_gives_scr_and_ssr() {
        let data = read("board", "mmcblk1p1").unwrap();
        assert_eq!((data.kind, data.rca, data.ext_csd), (Some(CardKind::Sd), Some(0xe624), None));
        assert!(data.scr.is_some() && data.ssr.is_some() && data.csd.is_some());
        assert_eq!(data.origins[0].notes[0], "mmcblk1p1 is a part of the card mmcblk1, which is read as a whole");
    }

    #[test]
    fn an_old_kernels_sysfs_alone_gives_dated_health() {
        let data = read("old-kernel", "mmcblk0").unwrap();
        let ext_csd = data.ext_csd.unwrap();
        assert_eq!([192, 267, 268, 269].map(|offset| ext_csd.byte(offset)), [Some(7), Some(1), Some(2), Some(3)]);
        assert_eq!(data.sysfs.get("enhanced_area_offset").map(String::as_str), Some("4194304"));
        let notes = data.origins[0].notes.join("\n");
        assert!(notes.contains("last probe") && notes.contains("the copy has no "), "{notes}");
    }

    #[test]
    fn a_missing_card_is_reported_with_the_present_ones() {
        for (tree, source) in [("board", "mmcblk5"), ("board", "-"), ("board", "sda"), ("board", "../mmcblk0x")] {
            let error = read(tree, source).unwrap_err().to_string();
            assert!(error.starts_with(source) && error.ends_with("board has mmcblk0, mmcblk1"), "{error}");
        }
        assert!(read("board/proc", "mmcblk0").unwrap_err().to_string().contains("expected a folder sys/block"));
    }
}
