//! The four real dumps as every tool prints them in words of several bytes.

use super::*;

/// A way to print bytes in words.
#[derive(Clone, Copy, Debug)]
struct Printed {
    /// Bytes in a word.
    word: usize,
    /// Whether a word is a little-endian number.
    little: bool,
    /// How the address is printed, if it is.
    address: Option<fn(usize) -> String>,
    /// Whether a column of letters follows.
    letters: bool,
}

fn print(bytes: &[u8], how: Printed) -> String {
    let mut log = String::new();
    for (index, row) in bytes.chunks(16).enumerate() {
        let words = row.chunks(how.word).map(|word| {
            let digits =
                |bytes: &mut dyn Iterator<Item = &u8>| bytes.map(|byte| format!("{byte:02x}")).collect::<String>();
            if how.little { digits(&mut word.iter().rev()) } else { digits(&mut word.iter()) }
        });
        let words: Vec<String> = words.collect();
        let address = how.address.map(|address| address(16 * index)).unwrap_or_default();
        let shown = |&byte: &u8| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '.' };
        let letters: String = if how.letters { row.iter().map(shown).collect() } else { String::new() };
        let gap = if how.letters { "  " } else { "" };
        log.push_str(&format!("{address} {}{gap}{letters}\n", words.join(" ")));
    }
    log
}

fn colon(offset: usize) -> String {
    format!("{offset:08x}:")
}

fn octal(offset: usize) -> String {
    format!("{offset:07o}")
}

fn real_dumps() -> Vec<Vec<u8>> {
    let parts = ["aaru-64g", "ac100-mmc32g", "samsung-bjnb4r-32g", "samsung-klm-8g"];
    parts
        .map(|part| {
            read_file(&format!("ext_csd_raw/{part}/{part}.ext_csd.hex")).unwrap().ext_csd.unwrap().bytes().to_vec()
        })
        .to_vec()
}

#[test]
fn words_of_either_byte_order_are_read() {
    for dump in real_dumps() {
        for word in [2, 4, 8] {
            for little in [true, false] {
                for address in [None, Some(colon as fn(usize) -> String), Some(octal)] {
                    for letters in [true, false] {
                        let how = Printed { word, little, address, letters: letters && address.is_some() };
                        let log = print(&dump, how);
                        let data =
                            read("log", log.as_bytes()).unwrap_or_else(|error| panic!("{error}: {how:?}\n{log}"));
                        assert_eq!(data.ext_csd.unwrap().bytes()[..], dump[..], "{how:?}\n{log}");
                    }
                }
            }
        }
    }
}

#[test]
fn words_valid_in_both_byte_orders_or_neither_are_refused() {
    let refused = |bytes: &[u8]| {
        let how = Printed { word: 2, little: false, address: Some(colon), letters: false };
        read("log", print(bytes, how).as_bytes()).unwrap_err().to_string()
    };
    let mut both = [0; 512];
    for (offset, value) in [(192, 5), (193, 5), (194, 2), (196, 7), (197, 3), (212, 1), (224, 1), (225, 2)] {
        both[offset] = value;
    }
    let message = "log: at line 1: expected EXT_CSD in words that are plausible in one byte order; \
                   dump bytes instead, e.g. with xxd -p, found words that";
    assert_eq!(refused(&both), format!("{message} are plausible in both"));
    let neither: Vec<u8> = (0..512).map(|index| (index % 251) as u8 | 0x10).collect();
    assert_eq!(refused(&neither), format!("{message} are plausible in neither"));
}
