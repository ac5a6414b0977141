//! Which card, disk or partition a path in sysfs belongs to.

/// Whose attribute a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'t> {
    /// `/sys/block/mmcblk0/device/` or `/sys/bus/mmc/devices/mmc0:0001/`.
    Card,
    /// `/sys/block/mmcblk0/` or `/sys/block/mmcblk0boot0/`.
    Disk(&'t str),
    /// `/sys/block/mmcblk0/mmcblk0p1/`: the disk and the partition.
    Partition(&'t str, &'t str),
}

/// What a path calls the card: one card has one name of each form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids<'t> {
    /// `mmcblk0`.
    pub(super) disk: Option<&'t str>,
    /// `mmc0:0001`.
    pub(super) card: Option<&'t str>,
}

/// The owner of the files in a directory; `None` for a directory of the driver, the queue or power management.
pub(super) fn owner(directory: &str) -> Option<(Ids<'_>, Place<'_>)> {
    // Files of debugfs are not attributes: other forms read them.
    if directory.contains("kernel/debug") {
        return None;
    }
    let mut ids = Ids::default();
    let mut place = None;
    let mut disk: Option<&str> = None;
    for part in directory.split('/').filter(|part| !matches!(*part, "" | ".")) {
        place = if is_card(part) {
            ids.card = Some(part);
            Some(Place::Card)
        } else if let Some(whole) = whole_disk(part) {
            ids.disk = Some(whole);
            match disk.filter(|disk| is_partition(part, disk)) {
                Some(disk) => Some(Place::Partition(disk, part)),
                None => {
                    disk = Some(part);
                    Some(Place::Disk(part))
                }
            }
        } else if part == "device" && disk.is_some() {
            Some(Place::Card)
        } else {
            None
        };
    }
    place.map(|place| (ids, place))
}

/// `mmc0:0001`: a host and a card's address.
pub(super) fn is_card(name: &str) -> bool {
    let Some((host, address)) = name.strip_prefix("mmc").and_then(|rest| rest.split_once(':')) else { return false };
    let digits = |text: &str, radix| !text.is_empty() && text.chars().all(|letter| letter.is_digit(radix));
    digits(host, 10) && address.len() == 4 && digits(address, 16)
}

/// `mmcblk0` of `mmcblk0`, `mmcblk0boot0`, `mmcblk0gp1`, `mmcblk0rpmb` or `mmcblk0p2`.
pub(super) fn whole_disk(name: &str) -> Option<&str> {
    let digits = name.strip_prefix("mmcblk")?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let rest = digits.get(end..)?;
    let numbered = |prefix: &str| {
        rest.strip_prefix(prefix).is_some_and(|number| number.bytes().all(|letter| letter.is_ascii_digit()))
    };
    let known = rest.is_empty() || rest == "rpmb" || ["p", "boot", "gp"].into_iter().any(numbered);
    (end > 0 && known).then(|| name.get(.."mmcblk".len() + end))?
}

fn is_partition(name: &str, disk: &str) -> bool {
    let number = name.strip_prefix(disk).and_then(|rest| rest.strip_prefix('p'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_belong_to_the_card_a_disk_or_a_partition() {
        let device = "/sys/devices/platform/soc/2194000.mmc/mmc_host/mmc0/mmc0:0001";
        let at = |path: &str| {
            let path = format!("{device}{path}");
            owner(&path).map(|(_, place)| format!("{place:?}"))
        };
        assert_eq!(at(""), Some("Card".into()));
        assert_eq!(at("/block/mmcblk0"), Some("Disk(\"mmcblk0\")".into()));
        assert_eq!(at("/block/mmcblk0/mmcblk0p2"), Some("Partition(\"mmcblk0\", \"mmcblk0p2\")".into()));
        assert_eq!(at("/block/mmcblk0/mmcblk0boot1"), Some("Disk(\"mmcblk0boot1\")".into()));
        for none in ["/power", "/block/mmcblk0/queue", "/block/mmcblk0/mmcblk0p2/holders", "/driver"] {
            assert_eq!(at(none), None, "{none}");
        }
        let ids = owner("/sys/block/mmcblk1/device").map(|(ids, place)| (ids.disk, ids.card, place));
        assert_eq!(ids, Some((Some("mmcblk1"), None, Place::Card)));
        for none in ["", ".", "/sys/class/net/eth0", "/sys/kernel/debug/mmc0/mmc0:0001", "mmcblk", "mmcblkx", "mmc0:1"]
        {
            assert_eq!(owner(none), None, "{none}");
        }
    }
}
