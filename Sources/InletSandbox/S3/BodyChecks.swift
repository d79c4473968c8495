import Foundation
import HTTPTypes
import InletCore

/// The checksums that a client sends in front of a body, and how the received body is held against them.
struct BodyChecks: Sendable {
    private let payload: PayloadHash
    private var md5: [UInt8]?
    private var crc32c: [UInt8]?
    private var sha256: [UInt8]?

    var needsCRC32C: Bool { crc32c != nil }

    init(_ fields: HTTPFields, payload: PayloadHash) throws(StoreError) {
        self.payload = payload
        if let text = fields[.contentMD5] {
            guard let bytes = Self.bytes(text, count: 16) else {
                throw StoreError(
                    status: 400, code: "InvalidDigest", message: "Content-MD5 is not an MD5 in base 64.")
            }
            md5 = bytes
        }
        crc32c = try Self.checksum(.amzChecksumCRC32C, in: fields, count: 4)
        sha256 = try Self.checksum(.amzChecksumSHA256, in: fields, count: 32)
    }

    /// - Throws: `XAmzContentSHA256Mismatch` or `BadDigest`.
    func check(_ hash: ContentHash) throws(StoreError) {
        let (md5, sha256) = hash.finish()
        if case .sha256(let signed) = payload, signed != sha256.hex {
            throw StoreError(
                status: 400, code: "XAmzContentSHA256Mismatch",
                message: "The provided 'x-amz-content-sha256' header does not match what was computed.",
                details: [
                    .init(name: "ClientComputedContentSHA256", text: signed),
                    .init(name: "S3ComputedContentSHA256", text: sha256.hex),
                ])
        }
        if let given = self.md5, given != md5 { throw .badDigest("Content-MD5") }
        if let given = self.sha256, given != sha256 { throw .badDigest("x-amz-checksum-sha256") }
        if let given = crc32c, given != hash.crc32c?.bytes { throw .badDigest("x-amz-checksum-crc32c") }
    }

    /// The verified checksums, told again in the answer.
    var echoed: HTTPFields {
        var fields = HTTPFields()
        if let crc32c { fields[.amzChecksumCRC32C] = Data(crc32c).base64EncodedString() }
        if let sha256 { fields[.amzChecksumSHA256] = Data(sha256).base64EncodedString() }
        return fields
    }

    private static func checksum(_ name: HTTPField.Name, in fields: HTTPFields, count: Int) throws(StoreError)
        -> [UInt8]?
    {
        guard let text = fields[name] else { return nil }
        guard let bytes = bytes(text, count: count) else {
            throw .badRequest("Value for \(name.canonicalName) header is invalid.")
        }
        return bytes
    }

    private static func bytes(_ base64: String, count: Int) -> [UInt8]? {
        guard let data = Data(base64Encoded: base64), data.count == count else { return nil }
        return Array(data)
    }
}

extension HTTPField.Name {
    /// RFC 1864. The name is a valid token, so the fallback is never taken.
    fileprivate static let contentMD5 = HTTPField.Name("Content-MD5") ?? .eTag
}
