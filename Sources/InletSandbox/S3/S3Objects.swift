import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// PutObject, UploadPart, GetObject, HeadObject and DeleteObject.
extension S3Service {
    func put(_ call: inout SandboxCall) async throws -> Response {
        let key = try ObjectKey(call["key"])
        guard call.fields["x-amz-copy-source"] == nil else { throw SandboxRefusal.notImplemented("CopyObject") }
        let isNew = try mustBeNew(call.fields)
        if isNew { try store.checkNew(key) }
        let checks = try BodyChecks(call.fields, rules)
        let file = try await receive(&call, checks)
        let object = try store.keepSingle(
            key, contentType: call.fields[.contentType] ?? "application/octet-stream",
            attributes: ObjectAttributes.of(call.fields), isNew: isNew, file)
        return call.stored(etag: call.etag(object.md5.bytes), checks.echoed)
    }

    func putPart(_ call: inout SandboxCall) async throws -> Response {
        guard let number = call.query("partNumber").flatMap(Int.init) else { return try refuse(&call) }
        let (key, upload) = (try ObjectKey(call["key"]), call.query("uploadId") ?? "")
        guard (1...10_000).contains(number) else {
            throw SandboxRefusal.invalidArgument(
                "Part number must be an integer between 1 and 10000, inclusive")
        }
        guard call.fields["x-amz-copy-source"] == nil else { throw SandboxRefusal.notImplemented("UploadPartCopy") }
        let opened = try store.checkPart(number, upload: upload, key: key).attributes["x-amz-checksum-algorithm"]
        let checks = try BodyChecks(call.fields, rules)
        guard checks.isOnly(opened) else {
            throw SandboxRefusal.badRequest(
                "Checksum Type mismatch occurred, expected checksum Type: \(opened?.lowercased() ?? "null")")
        }
        let file = try await receive(&call, checks)
        let etag = call.etag(file.hash.finish().md5)
        try store.keepPart(number, upload: upload, etag: etag, file)
        return call.stored(etag: etag, checks.echoed)
    }

    private func receive(_ call: inout SandboxCall, _ checks: BodyChecks) async throws -> ReceivedFile {
        var file = try ReceivedFile(in: store.incoming, crcs: checks.compared)
        try await call.receive(into: &file, limit: rules.largestBody)
        try checks.check(file.hash)
        return file
    }

    /// The requested object or range.
    func read(_ call: inout SandboxCall) throws -> Response {
        var response = try store.read(call["key"], call.fields)
        guard response.status != .rangeNotSatisfiable else {
            throw SandboxRefusal(416, "InvalidRange", "The requested range is not satisfiable")
        }
        let object = try store.object(ObjectKey(call["key"]))
        response.headers[.lastModified] = object.modified.httpDate
        let showsChecksums = call.fields["x-amz-checksum-mode"] == "ENABLED"
        for field in ObjectAttributes.shown(object.attributes, withChecksums: showsChecksums) {
            response.headers[field.name] = field.value
        }
        return response
    }

    func delete(_ call: inout SandboxCall) throws -> Response {
        try store.delete(ObjectKey(call["key"]))
        return Response(status: .noContent)
    }
}

/// The checksums that a client sends with a body, and their comparison with the received body.
struct BodyChecks: Sendable {
    static let algorithms: [Digest.Algorithm] = [.crc64nvme, .crc32c, .sha256]

    static func field(_ algorithm: Digest.Algorithm) -> String { "x-amz-checksum-\(algorithm.rawValue)" }

    /// The signed `x-amz-content-sha256`, in lower-case hexadecimal; nil for a body that is not covered.
    private let signed: String?
    private var md5: [UInt8]?
    private var given: [(algorithm: Digest.Algorithm, bytes: [UInt8], rule: S3Sandbox.ChecksumRule)] = []

    /// The checksums to compute of the body.
    var compared: [Digest.Algorithm] { given.map(\.algorithm) }

    init(_ fields: HTTPFields, _ rules: S3Sandbox.Rules) throws(SandboxRefusal) {
        let payload = fields["x-amz-content-sha256"] ?? ""
        signed = payload == "UNSIGNED-PAYLOAD" || !rules.comparesPayload ? nil : payload.lowercased()
        // RFC 1864.
        if let text = fields["Content-MD5"] {
            guard let bytes = Self.bytes(text, count: 16) else {
                throw SandboxRefusal(400, "InvalidDigest", "Content-MD5 is not an MD5 in base 64.")
            }
            md5 = bytes
        }
        for algorithm in Self.algorithms {
            let name = Self.field(algorithm)
            guard let bytes = try Self.checksum(name, in: fields, count: algorithm.length) else { continue }
            let rule = rules.checksums[algorithm] ?? .compared
            guard rule != .refused else { throw .badRequest("This store does not know the checksum in \(name).") }
            given.append((algorithm, bytes, rule))
        }
    }

    /// - Throws: `XAmzContentSHA256Mismatch` or `BadDigest`.
    func check(_ hash: ContentHash) throws(SandboxRefusal) {
        let (md5, sha256) = hash.finish()
        if let signed, signed != sha256.hex {
            throw SandboxRefusal(
                400, "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
                details: ["ClientComputedContentSHA256": signed, "S3ComputedContentSHA256": sha256.hex])
        }
        if let given = self.md5, given != md5 { throw .badDigest("Content-MD5") }
        try checkSums(hash)
    }

    /// The same for the checksums of an object that is composed.
    func checkSums(_ hash: ContentHash) throws(SandboxRefusal) {
        for (algorithm, bytes, rule) in given where rule == .compared && hash[algorithm] != bytes {
            throw .badDigest(Self.field(algorithm))
        }
    }

    /// Whether there is no other checksum than that with which the upload was opened.
    func isOnly(_ opened: String?) -> Bool { given.allSatisfy { $0.algorithm.rawValue == opened?.lowercased() } }

    /// The checksums, repeated in the answer.
    var echoed: HTTPFields {
        var fields = HTTPFields()
        for (algorithm, bytes, rule) in given where rule != .ignored {
            fields[Self.field(algorithm)] = Data(bytes).base64EncodedString()
        }
        return fields
    }

    private static func checksum(_ name: String, in fields: HTTPFields, count: Int) throws(SandboxRefusal) -> [UInt8]? {
        guard let text = fields[name] else { return nil }
        guard let bytes = bytes(text, count: count) else {
            throw .badRequest("Value for \(name) header is invalid.")
        }
        return bytes
    }

    private static func bytes(_ base64: String, count: Int) -> [UInt8]? {
        guard let data = Data(base64Encoded: base64), data.count == count else { return nil }
        return Array(data)
    }
}

/// Fields that a client gives with an object, and that are stored with it.
enum ObjectAttributes {
    private static let kept: Set<String> = [
        "cache-control", "content-disposition", "content-encoding", "content-language", "expires", "x-amz-acl",
        "x-amz-storage-class", "x-amz-tagging", "x-amz-website-redirect-location",
    ]
    /// Stored, but never shown by GET and HEAD.
    private static let silent: Set<String> = ["x-amz-acl", "x-amz-tagging"]

    /// Shown on request only.
    private static let checksums = "x-amz-checksum-"

    /// By lower-case names.
    static func of(_ fields: HTTPFields) -> [String: String] {
        var attributes: [String: String] = [:]
        for field in fields {
            let name = field.name.canonicalName
            let isKept = kept.contains(name) || name.hasPrefix("x-amz-meta-") || name.hasPrefix(checksums)
            guard isKept else { continue }
            attributes[name] = attributes[name].map { "\($0),\(field.value)" } ?? field.value
        }
        return attributes
    }

    /// The fields that GET and HEAD show; the class STANDARD is left out.
    static func shown(_ attributes: [String: String], withChecksums: Bool) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in attributes where !silent.contains(name) {
            if name.hasPrefix(checksums), !withChecksums { continue }
            if (name, value) != ("x-amz-storage-class", "STANDARD") { fields[name] = value }
        }
        return fields
    }
}

extension WallTime {
    /// As `Last-Modified` has it (RFC 9110, section 5.6.7).
    fileprivate var httpDate: String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
    }
}
