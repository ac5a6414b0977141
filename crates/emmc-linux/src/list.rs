//! The cards of a machine, at a glance and without privileges.

use std::path::Path;

use emmc_port::{CardData, Format, SourceError};
use emmc_regs::CardKind;
use emmc_units::Bytes;
use serde::Serialize;

use crate::tree::Tree;
use crate::{blocks, card_name, sysfs};

/// The cards of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardList {
    /// In order of their numbers.
    pub cards: Vec<ListedCard>,
}

/// One card, from sysfs without privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedCard {
    /// `/dev/mmcblk0`.
    pub device: String,
    /// eMMC or SD, if the kernel says which.
    pub kind: Option<CardKind>,
    /// CID.PNM.
    pub name: Option<String>,
    /// Who probably made it.
    pub manufacturer: Option<String>,
    /// The user area.
    ///
    /// Unit: bytes.
    pub size_bytes: Option<Bytes>,
    /// Whether the kernel refuses writes.
    pub read_only: Option<bool>,
    /// Where its filesystems are mounted.
    pub mounted: Vec<String>,
    /// PRE_EOL_INFO as of the last probe.
    pub pre_eol_info: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_A as of the last probe.
    pub life_time_a: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_B as of the last probe.
    pub life_time_b: Option<u8>,
}

/// Lists the cards of this machine, or of a copied tree.
///
/// Errors: the folder given holds no copied /sys. A machine without cards is an empty list.
pub fn list(sysroot: Option<&Path>) -> Result<CardList, SourceError> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied)?;
    // A kernel without block devices has no cards either.
    let names = tree.names(&tree.sys("block")).unwrap_or_default();
    let disks = names.iter().filter(|name| card_name::disk_of(name) == Some(name));
    Ok(CardList { cards: disks.map(|disk| listed(&tree, disk)).collect() })
}

fn listed(tree: &Tree, disk: &str) -> ListedCard {
    let mut data = CardData::new(disk, Format::Live);
    sysfs::apply(sysfs::attributes(tree, disk).unwrap_or_default(), &mut data);
    let kept = sysfs::ext_csd(&data.sysfs);
    let health = |offset| kept.as_ref().and_then(|ext_csd| ext_csd.byte(offset));
    let identity = data.cid.zip(data.kind).map(|(cid, kind)| cid.decode(kind, health(192)));
    let maker = data.cid.zip(data.kind).and_then(|(cid, kind)| cid.manufacturer(kind));
    let blocks = blocks::read(tree, disk);
    let user_area = blocks.disks.iter().find(|known| known.name == disk);
    ListedCard {
        device: format!("/dev/{disk}"),
        kind: data.kind,
        name: identity.map(|identity| identity.product_name).or_else(|| data.sysfs.get("name").cloned()),
        manufacturer: maker.map(|maker| maker.to_string()),
        size_bytes: user_area.and_then(|area| area.bytes),
        read_only: user_area.and_then(|area| area.read_only),
        mounted: blocks::mount_points(&blocks),
        pre_eol_info: health(267),
        life_time_a: health(268),
        life_time_b: health(269),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_tree_lists_its_cards() {
        let board = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs/board");
        let cards = list(Some(&board)).unwrap().cards;
        assert_eq!(cards.len(), 2);
        let ListedCard { device, kind, name, size_bytes, mounted, life_time_a, .. } = &cards[0];
        assert_eq!((device.as_str(), *kind, name.as_deref()), ("/dev/mmcblk0", Some(CardKind::Emmc), Some("BJNB4R")));
        assert_eq!((*size_bytes, *life_time_a), (Some(Bytes(61_071_360 * 512)), Some(6)));
        assert_eq!(mounted, &["/boot", "/"]);
        assert!(cards[0].manufacturer.as_deref().is_some_and(|maker| maker.contains("Samsung")));
        assert_eq!((cards[1].kind, cards[1].name.as_deref()), (Some(CardKind::Sd), Some("SD16G")));
        assert_eq!((cards[1].life_time_a, cards[1].pre_eol_info), (None, None));
    }

    #[test]
    fn this_machine_can_be_listed() {
        assert!(list(None).is_ok());
        assert!(list(Some(Path::new("/no such folder"))).is_err());
    }
}
