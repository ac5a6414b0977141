#![no_main]
//! Any bytes as an NBD request and as an option; decoded values match the bytes.

use emmc_serve::nbd::option::{self, ClientOption, NAME_BYTES_MAX};
use emmc_serve::nbd::wire::{REQUEST_BYTES, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = data.first_chunk::<REQUEST_BYTES>() {
        if let Ok(request) = Request::decode(bytes) {
            assert_eq!(request.encode(), *bytes);
        }
    }
    if let Some(bytes) = data.first_chunk::<{ option::OPTION_BYTES }>() {
        let _ = option::decode_header(bytes);
    }
    let Some((number, data)) = data.split_first() else { return };
    match option::decode(u32::from(*number), data) {
        Ok(ClientOption::ExportName(name)) => assert_eq!(name.as_bytes(), data),
        Ok(ClientOption::Info(name, wanted) | ClientOption::Go(name, wanted)) => {
            assert_eq!(6 + name.len() + 2 * wanted.len(), data.len());
        }
        Ok(ClientOption::ListMetaContext(name, queries) | ClientOption::SetMetaContext(name, queries)) => {
            let bytes: usize = queries.iter().map(|query| 4 + query.len()).sum();
            assert_eq!(8 + name.len() + bytes, data.len());
            assert!(queries.iter().chain([&name]).all(|name| name.len() <= NAME_BYTES_MAX));
        }
        Ok(ClientOption::List | ClientOption::StartTls | ClientOption::StructuredReply) => assert!(data.is_empty()),
        Ok(ClientOption::Abort | ClientOption::Other(_)) | Err(_) => {}
    }
});
