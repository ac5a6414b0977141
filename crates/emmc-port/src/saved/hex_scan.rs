//! Finds the hexadecimal digits in a text: behind labels, alone on lines, behind addresses.

use super::dump::{self, Dump};
use super::labels::{self, Labelled, Register};
use super::text::Text;
use crate::SourceError;

/// Digits of one block at most: the largest saved reply.
const BLOCK_DIGITS_MAX: usize = 8192;

/// Digits from which a line is taken for a register among other text.
const LINE_DIGITS_MIN: usize = 16;

/// Bytes from which a dump among other text may be a register.
const DUMP_BYTES_MIN: usize = 192;

/// Lines of bare digits that follow one another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The first line.
    pub(super) line: u64,
    /// The digits of each line, of the first [`BLOCK_DIGITS_MAX`].
    pub(super) rows: Vec<String>,
    /// All digits.
    pub(super) digits: usize,
    /// The register whose file the line before asks for.
    pub(super) asked: Option<Register>,
}

/// Everything hexadecimal in a text.
#[derive(Debug)]
pub(super) struct Scan<'t> {
    /// Lines that name their register.
    pub(super) labelled: Vec<(u64, Labelled)>,
    /// Attributes of sysfs.
    pub(super) attributes: Vec<(&'t str, &'t str)>,
    /// Lines of digits.
    pub(super) blocks: Vec<Block>,
    /// Dumps with addresses.
    pub(super) dumps: Vec<Dump>,
    /// Whether the text is little else, so that digits which are no register are worth an error.
    pub(super) alone: bool,
}

impl Scan<'_> {
    /// Whether something in the text is, or should be, a register.
    pub(super) fn is_promising(&self) -> bool {
        let hexadecimal = !self.blocks.is_empty() || !self.dumps.is_empty();
        !self.labelled.is_empty()
            || !self.attributes.is_empty()
            || self.blocks.iter().any(|block| block.asked.is_some() || block.digits == 1024)
            || self.dumps.iter().any(|dump| dump.bytes.len() >= DUMP_BYTES_MIN)
            || (hexadecimal && self.alone)
    }
}

/// Looks through a text once.
///
/// Errors: a dump whose addresses do not fit its rows.
pub(super) fn scan<'t>(text: &'t Text) -> Result<Scan<'t>, SourceError> {
    let dumps = dump::dumps(text)?;
    let mut scan = Scan { labelled: Vec::new(), attributes: Vec::new(), blocks: Vec::new(), dumps, alone: false };
    let (mut hexadecimal, mut others) = (0usize, 0usize);
    let mut open = false;
    let mut asked = None;
    let mut attribute = None;
    // Without a colon, a dump's rows would pass for bare digits.
    let mut rows = scan.dumps.iter().map(|dump| dump.line..=dump.last_line).collect::<Vec<_>>().into_iter().peekable();
    for line in text.lines().filter(|line| !line.text.trim().is_empty()) {
        while rows.next_if(|rows| *rows.end() < line.number).is_some() {}
        if rows.peek().is_some_and(|rows| rows.contains(&line.number)) {
            (open, asked, attribute) = (false, None, None);
            continue;
        }
        let digits = labels::digits(line.text.trim_matches([' ', '\t', '"', '{', '}']));
        let first = hexadecimal == 0 && others == 0;
        match digits.filter(|digits| open || first || asked.is_some() || digits.len() >= LINE_DIGITS_MIN) {
            Some(digits) => {
                hexadecimal += 1;
                attribute = None;
                if !open {
                    scan.blocks.push(Block { line: line.number, asked: asked.take(), ..Block::default() });
                }
                open = true;
                if let Some(block) = scan.blocks.last_mut() {
                    block.digits = block.digits.saturating_add(digits.len());
                    if block.digits <= BLOCK_DIGITS_MAX {
                        block.rows.push(digits);
                    }
                }
            }
            None => {
                open = false;
                asked = labels::asked_for(line);
                let asked_before = attribute.take().map(|name| (name, line.text.trim()));
                attribute = labels::asked_attribute(line).filter(|_| asked.is_none());
                // A command right after a command says that the first one printed nothing.
                let answer = asked_before.filter(|_| attribute.is_none() && asked.is_none());
                scan.attributes.extend(labels::sysfs_attribute(line).or(answer));
                match labels::labelled(line) {
                    Some(labelled) => {
                        hexadecimal += 1;
                        scan.labelled.push((line.number, labelled));
                    }
                    None => others += 1,
                }
            }
        }
    }
    let rows: usize = scan.dumps.iter().map(|dump| dump.rows).sum();
    scan.alone = hexadecimal + rows >= others;
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_labels_and_attributes_are_found() {
        let log = "# cat /sys/block/mmcblk0/device/cid\n1501\n\n# cid: 15010038\n/sys/block/mmcblk0/device/type:MMC\nadd\n\
                   00112233445566778899\naabb\n";
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        let scan = scan(&text).unwrap();
        let blocks: Vec<_> = scan.blocks.iter().map(|block| (block.line, block.digits, block.asked)).collect();
        assert_eq!(blocks, [(2, 4, Some(Register::Cid)), (7, 24, None)]);
        assert_eq!(scan.attributes, [("type", "MMC")]);
        assert_eq!(scan.labelled, [(4, Labelled::Whole(Register::Cid, "15010038".into()))]);
        assert!(scan.is_promising());
    }

    #[test]
    fn words_are_not_digits() {
        let promising = |log: &str| {
            let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
            scan(&text).unwrap().is_promising()
        };
        assert!(promising("12\n"));
        assert!(promising(&"00".repeat(512)));
        assert!(promising(&format!("# x\n# y\n# z\n{}\n", "00".repeat(512))));
        for none in ["hello\n", "hello\nadded\nfacade\n", "key\nfor\nme\nd41d8cd98f00b204e9800998ecf8427e\n"] {
            assert!(!promising(none), "{none}");
        }
    }

    #[test]
    fn a_long_block_is_counted_but_not_kept() {
        let log = "00112233445566778899\n".repeat(1000);
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        let scan = scan(&text).unwrap();
        assert_eq!((scan.blocks[0].digits, scan.blocks[0].rows.len()), (20_000, 409));
    }
}
