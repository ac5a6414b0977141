#![no_main]
//! A vfio-user client that sends any messages, with and without descriptors: each is answered, refused, or ends the
//! session.

use std::os::fd::OwnedFd;

use emmc_serve::pci::{Function, Identity};
use emmc_serve::vfio_user::Session;
use emmc_units::Instant;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// A message whose length is mostly what its header says.
fn message(input: &mut Unstructured) -> Result<Vec<u8>> {
    let command = input.int_in_range(0..=17u16)?;
    let flags = *input.choose(&[0u32, 0, 0, 0x10, 1, 0x21])?;
    let payload: Vec<u8> = match command {
        9 | 10 => {
            // Register accesses that go somewhere.
            let data: [u8; 8] = input.arbitrary()?;
            let count = *input.choose(&[1u32, 2, 4, 8, 3, 0, 64])?;
            let offset = u64::from(input.arbitrary::<u16>()? & 0x1fff);
            let region = *input.choose(&[0u32, 0, 7, 1, 9])?;
            let data = if command == 10 { &data[..count.min(8) as usize] } else { &[] };
            [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes(), data].concat()
        }
        _ => input.arbitrary()?,
    };
    let size = if input.ratio(15, 16)? { 16 + payload.len() as u32 } else { input.arbitrary()? };
    let header = [&[0, 0][..], &command.to_le_bytes(), &size.to_le_bytes(), &flags.to_le_bytes(), &[0; 4]].concat();
    Ok([header, payload].concat())
}

fn descriptors(input: &mut Unstructured) -> Result<Vec<OwnedFd>> {
    if !input.ratio(1, 8)? {
        return Ok(Vec::new());
    }
    let file = std::fs::File::open("/proc/self/exe").expect("this program");
    Ok((0..input.int_in_range(0..=2)?).map(|_| OwnedFd::from(file.try_clone().expect("a descriptor"))).collect())
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let mut session = Session::new(Function::new(Identity::default()));
    let agree = [&[0, 0, 1, 0, 20, 0, 0, 0][..], &[0; 12]].concat();
    session.receive(&agree, Vec::new(), Instant::START).expect("a version");
    while let (false, Ok(message), Ok(fds)) = (input.is_empty(), message(&mut input), descriptors(&mut input)) {
        session.answers().clear();
        if session.receive(&message, fds, Instant::START).is_err() {
            break;
        }
        let answer = session.answers();
        let answered = !answer.is_empty();
        let wanted = message[8] & 0x10 == 0;
        assert_eq!(answered, wanted, "{message:x?}");
        if answered {
            let size = u32::from_le_bytes(answer[4..8].try_into().expect("four bytes"));
            assert_eq!(size as usize, answer.len());
            assert_eq!(answer[..4], message[..4]);
        }
        session.signal();
    }
});
