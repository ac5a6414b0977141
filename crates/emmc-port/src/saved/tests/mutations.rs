use super::*;

/// A small generator of one sequence per seed, so that a failure can be repeated.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Pieces of every form, for splicing.
const PIECES: [&[u8]; 28] = [
    b"[",
    b"]",
    b"]: 0x",
    b": ",
    b"=",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\x1b[",
    b"*",
    b"...",
    b"0x",
    b"00000000: ",
    b"000:  ",
    b"|",
    b"GP1 Capacity: 1 GiB ENH\n",
    b"18446744073709551615",
    b"-1",
    b"99999999999999999999",
    b"cid: ",
    b"EXT_CSD[511]: 0x",
    b"/sys/block/mmcblk0/device/x:",
    b"Disk /dev/mmcblk9: 1, 1 bytes\n",
    b"{\"schema\":",
    b"Data:\n",
    b"Filesystem 1K-blocks Used\n",
    b"NAME SIZE MOUNTPOINT\n",
];

fn mutate(sequence: &mut Sequence, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[sequence.below(seeds.len())].clone();
    for _ in 0..1 + sequence.below(6) {
        let at = sequence.below(bytes.len() + 1);
        match sequence.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = sequence.below(256) as u8,
            2 if at < bytes.len() => bytes[at] ^= 1 << sequence.below(8),
            3 => drop(bytes.drain(at..(at + sequence.below(40)).min(bytes.len()))),
            4 => drop(bytes.splice(at..at, PIECES[sequence.below(PIECES.len())].iter().copied())),
            5 => {
                let other = &seeds[sequence.below(seeds.len())];
                let from = sequence.below(other.len() + 1);
                let to = (from + sequence.below(200)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let end = (at + sequence.below(100)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

#[test]
fn no_content_panics() {
    let mut seeds: Vec<Vec<u8>> = real_files().iter().map(|file| bytes(file)).collect();
    seeds.push((0..512).map(|index| index as u8).collect());
    let data = read("f", &bytes("ext_csd_raw/aaru-64g/aaru-64g.ext_csd.hex")).unwrap();
    seeds.push(serde_json::to_vec(&crate::Snapshot::from(&data)).unwrap());
    let mut sequence = Sequence(0x9e37_79b9_7f4a_7c15);
    let (mut read_well, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let content = mutate(&mut sequence, &seeds);
        match read("f", &content) {
            Ok(_) => read_well += 1,
            Err(error) => {
                refused += 1;
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }
    }
    // Both ways are taken often, so that the seeds exercise the importers and their refusals.
    assert!(read_well > 2000 && refused > 2000, "{read_well} read, {refused} refused");
}

/// Content that would take hours, and so be noticed, if any form compared each line with each other.
#[test]
fn large_content_is_read_or_refused_in_one_line() {
    let rows = |row: fn(usize) -> String| {
        (0..).map(row).scan(0, |size, row| {
            *size += row.len();
            (*size < 256 << 10).then_some(row)
        })
    };
    for content in [
        rows(|index| format!("mmcblk{index} 179:0 0 1 0 disk\n")).collect::<String>(),
        rows(|index| format!("/dev/mmcblk0p{index} 1 1 1 1% /mnt/{index}\n")).collect(),
        rows(|index| format!("{:08x}: 00\n*\n", index % 4)).collect(),
        rows(|_| "[[[[[[[[".to_string()).collect(),
        rows(|_| "*\n".to_string()).collect(),
        rows(|_| "/sys/mmc:::::::::".to_string()).collect(),
        rows(|_| "0123456789abcdef ".to_string()).collect(),
        rows(|_| "0123456789abcdef01\nother\n".to_string()).collect(),
        rows(|index| format!("cid: 15{index:06}\nother\nother\n")).collect(),
        rows(|index| format!("{:08x}: 00 01\n{:08x}: 02 03\nother\n", index, index + 2)).collect(),
        rows(|_| "cid: 1501004d384731474303dc0db061506f\n".to_string()).collect(),
        rows(|index| format!("User Capacity: {index} MiB\n")).collect(),
        rows(|index| format!("EXT_CSD[{}]: 0x00\n", index % 512)).collect(),
    ] {
        for heading in
            ["", "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\n", "Filesystem 1K-blocks Used Available Use% Mounted on\n"]
        {
            if let Err(error) = read("f", format!("{heading}{content}").as_bytes()) {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }
    }
}
