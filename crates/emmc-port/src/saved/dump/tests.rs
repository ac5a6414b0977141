use super::*;

fn read(log: &str) -> Result<Vec<Dump>, String> {
    let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
    dumps(&text).map_err(|error| error.to_string())
}

/// The log has one dump, of bytes 0 to 39 in order.
fn check(log: &str, radix: u32) {
    let expected: Vec<_> = (0..40).map(Some).collect();
    let found = read(log).unwrap();
    assert_eq!(found.len(), 1, "{log}");
    assert_eq!((found[0].line, found[0].radix, found[0].start, &found[0].bytes), (2, radix, 0, &expected), "{log}");
}

#[test]
fn rows_of_every_tool_are_read() {
    check(
        "$ xxd f
00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................
00000010: 1011 1213 1415 1617 1819 1a1b 1c1d 1e1f  ....ab cd|......
00000020: 2021 2223 2425 2627                       !\"#$%&'
$ ",
        16,
    );
    check(
        "$ xxd -g4 f
00000000: 00010203 04050607 08090a0b 0c0d0e0f  ................
00000010: 10111213 14151617 18191a1b 1c1d1e1f  ................
00000020: 20212223 24252627                     !\"#$%&'
",
        16,
    );
    check(
        "$ hexdump -C f
00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|
00000010  10 11 12 13 14 15 16 17  18 19 1a 1b 1c 1d 1e 1f  |................|
00000020  20 21 22 23 24 25 26 27                           | !\"#$%&'|
00000028
",
        16,
    );
    check(
        "$ hexdump f
0000000 0100 0302 0504 0706 0908 0b0a 0d0c 0f0e
0000010 1110 1312 1514 1716 1918 1b1a 1d1c 1f1e
0000020 2120 2322 2524 2726
0000028
",
        16,
    );
    check(
        "$ od -t x1 f
0000000 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
0000020 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f
0000040 20 21 22 23 24 25 26 27
0000050
",
        8,
    );
    check(
        "=> md.b 82000000 28
82000000: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f    ................
82000010: 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f    ................
82000020: 20 21 22 23 24 25 26 27     !\"#$%&'
=> ",
        16,
    );
    check(
        "=> md 82000000 a
82000000: 03020100 07060504 0b0a0908 0f0e0d0c    ................
82000010: 13121110 17161514 1b1a1918 1f1e1d1c    ................
82000020: 23222120 27262524     !\"#$%&'
",
        16,
    );
    check(
        "EXT_CSD:
000:  00 01 02 03 04 05 06 07 08 09
010:  0a 0b 0c 0d 0e 0f 10 11 12 13
020:  14 15 16 17 18 19 1a 1b 1c 1d
030:  1e 1f 20 21 22 23 24 25 26 27
=> ",
        10,
    );
}

#[test]
fn stars_repeat_rows_and_dots_omit_them() {
    let log = "00000000  07 07 07 07  |....|\n*\n00000010  01 02 03 04  |....|\n00000014\n";
    let mut expected = vec![Some(7); 16];
    expected.extend([1, 2, 3, 4].map(Some));
    assert_eq!(read(log).unwrap()[0].bytes, expected);
    let log = "00000c0: 08 00\n...\n00000c6: 01 02\n";
    let dump = read(log).unwrap().remove(0);
    assert_eq!((dump.start, dump.bytes), (192, vec![Some(8), Some(0), None, None, None, None, Some(1), Some(2)]));
    let whole =
        format!("{}*\n00000200\n", "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
    assert_eq!(read(&whole).unwrap()[0].bytes, vec![Some(0); 512]);
}

#[test]
fn other_text_is_no_dump_and_a_broken_dump_is_reported() {
    for none in ["", "00000000: 00", "deadbeef cafe", "abc: 12 34", "000: 01\n005: 02", "12:34:56 78 90", "*\n...\n*"] {
        assert_eq!(read(none), Ok(Vec::new()), "{none}");
    }
    let row = |address: u32| format!("{address:08x}: 00 01 02 03 04 05 06 07\n");
    let broken = [0, 8, 24, 32, 40].map(row).concat();
    assert_eq!(
        read(&broken),
        Err("log: at line 3: expected the hexadecimal address 8 bytes after 00000008, found 00000018".into())
    );
    // U-Boot's decimal rows of ten, one of which is missing or comes twice.
    let row = |offset: usize| format!("{offset:03}:  {}\n", "00 ".repeat(10.min(512 - offset)));
    let rows = |offsets: &mut dyn Iterator<Item = usize>| read(&offsets.map(row).collect::<String>());
    assert_eq!(
        rows(&mut (0..512).step_by(10).filter(|&offset| offset != 160)),
        Err("log: at line 17: expected the decimal address 10 bytes after 150, found 170".into())
    );
    assert_eq!(
        rows(&mut (0..512).step_by(10).chain([260])),
        Err("log: at line 53: expected the decimal address 2 bytes after 510, found 260".into())
    );
    let row = |address: u32| format!("{address:08x}: 00 01 02 03 04 05 06 07\n");
    let large: String = (0..513).map(|index| row(index * 8)).collect();
    assert_eq!(read(&large), Err("log: at line 1: expected a dump of at most 4096 bytes, found 4104 bytes".into()));
    assert_eq!(read("ffffffffffffffff: 01\nffffffffffffffff: 01\n"), Ok(Vec::new()));
    let huge = "00000000  00  |.|\n*\nffffffff\n";
    assert_eq!(read(huge), Err("log: at line 1: expected a dump of at most 4096 bytes, found 4294967295 bytes".into()));
}
