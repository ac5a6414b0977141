use super::*;

/// The message, without the part with the valid forms.
fn check(content: &[u8], at: &str, found: &str) {
    let message = read("f", content).unwrap_err().to_string();
    assert!(message.starts_with(&format!("f: at {at}: expected ")), "{message}");
    assert!(message.contains(&format!(", found {found}")), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(bytes)
    .collect()
}

#[test]
fn other_content_is_refused_in_one_line() {
    let whole = bytes("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let mut register = super::super::hex_meaning::bytes_of(std::str::from_utf8(&whole).unwrap());
    check(b"", "byte 0", "an empty file");
    check(b"\n\n", "line 1", "only whitespace");
    check(b"x", "line 1", "text that begins with \"x\"");
    check(b"\x01", "line 1", "text that begins with");
    check(b"\x00", "byte 1", "the end after 1 bytes");
    check(&register[..511], "byte 511", "the end after 511 bytes");
    register.push(0);
    check(&register, "byte 512", "1 more bytes");
    check(&vec![0; 1 << 20], "byte 0", "1048576 bytes of 0x00: nothing was read");
    check(&[0; 512], "byte 0", "512 bytes of 0x00: nothing was read");
    check(&[0xff; 512], "byte 0", "512 bytes of 0xff: no card answered");
    check(
        &"All work and no play.\n".repeat(400_000).as_bytes()[..8 << 20],
        "line 1",
        "text that begins with \"All work",
    );
    check(&vec![b' '; (8 << 20) + 1], "byte 8388608", "8388609 bytes");
    check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "byte 0", "a PNG image");
    check(b"%PDF-1.7\n", "byte 0", "a PDF document");
    check(&noise(512), "byte 192", "0x");
    check(&noise(4096), "byte 512", "3584 more bytes");
    check(br#"{"a": [1, 2]}"#, "line 1", "JSON or similar text that is not a snapshot");
    check(b"Could not read EXT_CSD from /dev/mmcblk0", "line 1", "a tool's message");
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("cid".bytes().flat_map(|byte| [byte, 0])).collect();
    check(&wide, "byte 0", "UTF-16; convert it first, e.g. iconv -f UTF-16 -t UTF-8");
}

#[test]
fn broken_hex_is_reported_with_its_line() {
    check(b"00", "line 1", "2 digits");
    check("0".repeat(1023).as_bytes(), "line 1", "511 bytes of 0x00");
    check(format!("{}1", "12".repeat(511)).as_bytes(), "line 1", "1023 digits");
    check("ff".repeat(512).as_bytes(), "line 1", "512 bytes of 0xff: no card answered");
    check(b"cid: 1501004d3847", "line 1", "12 digits");
    check(b"#\nocr: 0x00ff8080\nocr: 0x00ff8000", "line 3", "\"00ff8000\"");
    check(b"12121212121212121212121212121212", "line 1", "\"12121212121212121212121212121212\"");
    check(&hex::<512>(|index| index as u8), "line 1", "0xc0");
}

fn hex<const N: usize>(byte: fn(usize) -> u8) -> Vec<u8> {
    (0..N).map(|index| format!("{:02x}", byte(index))).collect::<String>().into_bytes()
}

#[test]
fn invalid_snapshots_are_refused_with_the_reason() {
    check(b"{\"schema\": \"emmclab.snapshot/1\", \"cid\": ", "line 1", "EOF while parsing a value");
    check(
        b"{\"schema\": \"emmclab.snapshot/1\", \"kind\": \"a\\nb\"}",
        "line 1",
        "unknown variant `a b`, expected `emmc` or `sd`",
    );
    check(b"{\"schema\": \"emmclab.snapshot/9\"}", "byte 0", "schema \"emmclab.snapshot/9\" is not");
    check(b"{\"schema\": \"emmclab.snapshot/1\", \"cid\": \"12\"}", "byte 0", "cid has 2 digits");
}

#[test]
fn blank_content_is_refused() {
    for blanks in ["\n", " \t\r\n", &"\n".repeat(SOURCE_BYTES_MAX)] {
        let message = read("x", blanks.as_bytes()).unwrap_err().to_string();
        assert_eq!(message, "x: at line 1: expected saved data of a card, found only whitespace");
    }
}
