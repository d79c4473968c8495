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
        key(at: stamp).code(of: stringToSign(canonicalRequest, at: stamp).utf8)
    }

    /// Whether `hex` is the signature of `canonicalRequest`; compared in constant time.
    func isSignature(_ hex: String, of canonicalRequest: String, at stamp: SigningTime) -> Bool {
        guard let bytes = Digest(.sha256, hex: hex)?.bytes, bytes.count == 32 else { return false }
        return key(at: stamp).isCode(bytes, of: stringToSign(canonicalRequest, at: stamp).utf8)
    }

    private func stringToSign(_ canonicalRequest: String, at stamp: SigningTime) -> String {
        let hash = SHA256.digest(of: canonicalRequest.utf8).hex
        return [Self.algorithm, stamp.text, text(at: stamp), hash].joined(separator: "\n")
    }

    private func key(at stamp: SigningTime) -> MessageCode {
        let first = MessageCode(key: "AWS4\(secret.reveal())".utf8)
        return text(at: stamp).split(separator: "/").reduce(first) { MessageCode(key: $0.code(of: $1.utf8)) }
    }
}
