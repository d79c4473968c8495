import Crypto
import Foundation
import InletCore

/// A key pair in a region: what signatures of AWS Signature Version 4 for S3 are computed with.
struct SignatureScope: Sendable {
    static let algorithm = "AWS4-HMAC-SHA256"

    let secret: Secret
    let accessKey: String
    let region: String

    /// `20261121/auto/s3/aws4_request`.
    func text(at stamp: SigningTime) -> String { "\(stamp.text.prefix(8))/\(region)/s3/aws4_request" }

    func signature(of canonicalRequest: String, at stamp: SigningTime) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: stringToSign(canonicalRequest, at: stamp), using: key(at: stamp)))
    }

    /// Whether `hex` is the signature of `canonicalRequest`; compared in constant time.
    func isSignature(_ hex: String, of canonicalRequest: String, at stamp: SigningTime) -> Bool {
        guard let bytes = Digest(.sha256, hex: hex)?.bytes, bytes.count == 32 else { return false }
        return HMAC<SHA256>.isValidAuthenticationCode(
            bytes, authenticating: stringToSign(canonicalRequest, at: stamp), using: key(at: stamp))
    }

    private func stringToSign(_ canonicalRequest: String, at stamp: SigningTime) -> Data {
        let hash = SHA256.hash(data: Data(canonicalRequest.utf8)).hex
        return Data([Self.algorithm, stamp.text, text(at: stamp), hash].joined(separator: "\n").utf8)
    }

    private func key(at stamp: SigningTime) -> SymmetricKey {
        let first = SymmetricKey(data: Data("AWS4\(secret.reveal())".utf8))
        return text(at: stamp).split(separator: "/").reduce(first) { key, part in
            SymmetricKey(data: Data(HMAC<SHA256>.authenticationCode(for: Data(part.utf8), using: key)))
        }
    }
}
