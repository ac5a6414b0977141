//! The card that a text belongs to: commands name it, and one text may hold the values of only one card.
//!
//! Absent on purpose: paths of sysfs, which `sysfs_text` handles, and a choice between two cards, which only the user
//! can make.

use super::text::Text;
use crate::SourceError;

/// The text before the path of a card whose registers a command reads.
const COMMANDS: [&str; 5] = ["extcsd read /", "cid read /", "csd read /", "scr read /", "cat /sys/"];

/// Refuses a text with the registers of two cards.
///
/// Errors: two commands that read registers name two cards.
pub(super) fn check(text: &Text) -> Result<(), SourceError> {
    let (mut disk, mut host) = (None, None);
    for line in text.lines().filter(|line| COMMANDS.iter().any(|command| line.text.contains(command))) {
        for (known, name) in [(&mut disk, disk_of(line.text)), (&mut host, host_of(line.text))] {
            let Some(name) = name else { continue };
            let (first, before): (u64, &str) = *known.get_or_insert((line.number, name));
            if before != name {
                let expected = format!("values of one card, {before} as on line {first}; save each card separately");
                return Err(text.malformed(line.number, expected, name));
            }
        }
    }
    Ok(())
}

/// The disk that a line names, without its partitions and areas: `mmcblk0` of `mmcblk0boot0`.
fn disk_of(line: &str) -> Option<&str> {
    let start = line.find("mmcblk")?;
    let digits = line.get(start + 6..)?;
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    line.get(start..start + 6 + end).filter(|_| end > 0)
}

/// The host controller of the address that a line names: `mmc0` of `mmc0:0001`.
fn host_of(line: &str) -> Option<&str> {
    line.split(['/', ' ']).find_map(|word| {
        let (host, _) = word.split_once(':')?;
        let digits = host.strip_prefix("mmc")?;
        (!digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use crate::saved::read;

    #[test]
    fn two_commands_on_two_cards_are_refused() {
        let of = |disk: &str| {
            format!("# mmc extcsd read /dev/{disk} | grep EOL\neMMC Pre EOL information [EXT_CSD_PRE_EOL_INFO]: 0x01\n")
        };
        let both = format!("{}{}", of("mmcblk0"), of("mmcblk1"));
        let message = read("log", both.as_bytes()).unwrap_err().to_string();
        let expected = "log: at line 3: expected values of one card, mmcblk0 as on line 1; save each card separately";
        assert_eq!(message, format!("{expected}, found mmcblk1"));
        let twice = format!("{}{}", of("mmcblk0"), of("mmcblk0"));
        assert!(read("log", twice.as_bytes()).is_ok());
    }

    #[test]
    fn two_registers_of_debugfs_are_refused() {
        let log =
            "# cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd\n# cat /sys/kernel/debug/mmc1/mmc1:0001/ext_csd\n00\n";
        let message = read("log", log.as_bytes()).unwrap_err().to_string();
        assert!(message.ends_with("mmc0 as on line 1; save each card separately, found mmc1"), "{message}");
    }
}
