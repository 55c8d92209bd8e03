//! TLS 1.3 for a server of a test, and for its client.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Configurations with TLS 1.3 and a certificate for `server.test`, whose signature has a fixed
/// length.
///
/// # Panics
///
/// Never: all inputs are constant.
pub fn tls() -> (ServerConfig, ClientConfig) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("Ed25519 is supported");
    let names = vec!["server.test".to_owned()];
    let mut certificate = rcgen::CertificateParams::new(names).expect("the name is valid");
    // That of rcgen is random, and without leading zeros it is shorter.
    certificate.serial_number = Some(1.into());
    let certificate = certificate.self_signed(&key).expect("it can be signed").der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("the certificate is valid");
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_protocol_versions(&versions).expect("TLS 1.3 is supported");
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&versions);
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is PKCS #8");
    let server = server.expect("TLS 1.3 is supported").with_no_client_auth().with_single_cert(vec![certificate], key);
    (server.expect("the key belongs to the certificate"), client)
}
