import Crypto
import Foundation
import InletCore

/// Makes and verifies presigned URLs by AWS Signature Version 4, query form (AWS, "Authenticating requests: using query
/// parameters"), for path-style addresses of region `auto`, as R2 has them.
struct URLSigner: Sendable {
    private static let algorithm = "AWS4-HMAC-SHA256"
    /// The longest lifetime that the specification allows: 7 days, in seconds.
    private static let longestLifetime: Int64 = 604_800

    private let secret: Secret
    private let accessKey: String
    private let region: String

    init(secret: Secret, accessKey: String = "SANDBOX", region: String = "auto") {
        self.secret = secret
        self.accessKey = accessKey
        self.region = region
    }

    /// The query that makes `request` good for `lifetime` seconds from `now`.
    func presign(_ request: SignableRequest, lifetime: Int64, now: WallTime) -> String {
        var signed = request
        let stamp = SigningTime(now)
        signed.query += [
            ("X-Amz-Algorithm", Self.algorithm),
            ("X-Amz-Credential", "\(accessKey)/\(scope(at: stamp))"),
            ("X-Amz-Date", stamp.text),
            ("X-Amz-Expires", String(lifetime)),
            ("X-Amz-SignedHeaders", signed.signedHeaders),
        ]
        let signature = signature(of: signed, at: stamp).hex
        return signed.canonicalQuery + "&X-Amz-Signature=" + signature
    }

    /// Holds a request that claims to be presigned against its signature and its lifetime; 403 as S3 answers it.
    func verify(_ request: SignableRequest, now: WallTime) throws(StoreError) {
        var unsigned = request
        unsigned.query.removeAll { $0.name == "X-Amz-Signature" }
        guard let given = request.value("X-Amz-Signature"), request.value("X-Amz-Algorithm") == Self.algorithm,
            let date = request.value("X-Amz-Date"), let stamp = SigningTime(text: date),
            let lifetime = request.value("X-Amz-Expires").flatMap(Int64.init),
            (0...Self.longestLifetime).contains(lifetime)
        else { throw .accessDenied("The request carries no complete query signature.") }
        guard request.value("X-Amz-Credential") == "\(accessKey)/\(scope(at: stamp))",
            let bytes = Self.bytes(hex: given),
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes, authenticating: stringToSign(unsigned, at: stamp), using: key(at: stamp))
        else { throw .signatureDoesNotMatch }
        let end = stamp.time + .seconds(lifetime)
        guard now < end else { throw Self.expired(lifetime: lifetime, end: end, now: now) }
    }

    private func scope(at stamp: SigningTime) -> String { "\(stamp.text.prefix(8))/\(region)/s3/aws4_request" }

    private static func expired(lifetime: Int64, end: WallTime, now: WallTime) -> StoreError {
        .accessDenied(
            "Request has expired",
            details: [
                .init(name: "X-Amz-Expires", text: String(lifetime)), .init(name: "Expires", text: end.rfc3339),
                .init(name: "ServerTime", text: now.rfc3339),
            ])
    }

    private func signature(of request: SignableRequest, at stamp: SigningTime) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: stringToSign(request, at: stamp), using: key(at: stamp)))
    }

    private func stringToSign(_ request: SignableRequest, at stamp: SigningTime) -> Data {
        let hash = SHA256.hash(data: Data(request.canonicalText.utf8)).hex
        return Data([Self.algorithm, stamp.text, scope(at: stamp), hash].joined(separator: "\n").utf8)
    }

    private func key(at stamp: SigningTime) -> SymmetricKey {
        let first = SymmetricKey(data: Data("AWS4\(secret.reveal())".utf8))
        return scope(at: stamp).split(separator: "/").reduce(first) { key, part in
            SymmetricKey(data: Data(HMAC<SHA256>.authenticationCode(for: Data(part.utf8), using: key)))
        }
    }

    private static func bytes(hex: String) -> [UInt8]? {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == 64, hex.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}

/// The moment a URL was signed, to the second.
struct SigningTime {
    var time: WallTime
    /// `20261121T072000Z`.
    var text: String

    init(_ time: WallTime) {
        text = time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
        self.time = WallTime(milliseconds: time.milliseconds / 1000 * 1000)
    }

    /// nil for a text that is not exactly such a moment.
    init?(text: String) {
        let digits = text.utf8.filter { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        guard digits.count == 14, text.utf8.count == 16, let numbers = UInt64(String(decoding: digits, as: UTF8.self))
        else { return nil }
        var parts = DateComponents()
        parts.calendar = Calendar(identifier: .gregorian)
        parts.timeZone = TimeZone(secondsFromGMT: 0)
        (parts.year, parts.month) = (Int(numbers / 10_000_000_000), Int(numbers / 100_000_000 % 100))
        (parts.day, parts.hour) = (Int(numbers / 1_000_000 % 100), Int(numbers / 10_000 % 100))
        (parts.minute, parts.second) = (Int(numbers / 100 % 100), Int(numbers % 100))
        guard let date = parts.date else { return nil }
        self.init(WallTime(milliseconds: Int64(date.timeIntervalSince1970) * 1000))
        guard self.text == text else { return nil }
    }
}
