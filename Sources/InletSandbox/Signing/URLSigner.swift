import Foundation
import InletCore

/// Makes and verifies presigned URLs by AWS Signature Version 4, query form (AWS, "Authenticating requests: using query
/// parameters"), for path-style addresses of region `auto`, as R2 has them.
struct URLSigner: Sendable {
    /// The longest lifetime that the specification allows: 7 days, in seconds.
    private static let longestLifetime: Int64 = 604_800

    private let scope: SignatureScope

    init(secret: Secret, accessKey: String = "SANDBOX", region: String = "auto") {
        scope = SignatureScope(secret: secret, accessKey: accessKey, region: region)
    }

    /// The query that makes `request` good for `lifetime` seconds from `now`.
    func presign(_ request: SignableRequest, lifetime: Int64, now: WallTime) -> String {
        var signed = request
        let stamp = SigningTime(now)
        signed.query += [
            ("X-Amz-Algorithm", SignatureScope.algorithm),
            ("X-Amz-Credential", "\(scope.accessKey)/\(scope.text(at: stamp))"),
            ("X-Amz-Date", stamp.text),
            ("X-Amz-Expires", String(lifetime)),
            ("X-Amz-SignedHeaders", signed.signedHeaders),
        ]
        let signature = scope.signature(of: signed.canonicalText, at: stamp).hex
        return signed.canonicalQuery + "&X-Amz-Signature=" + signature
    }

    /// Holds a request that claims to be presigned against its signature and its lifetime; 403 as S3 answers it.
    func verify(_ request: SignableRequest, now: WallTime) throws(StoreError) {
        var unsigned = request
        unsigned.query.removeAll { $0.name == "X-Amz-Signature" }
        guard let given = request.value("X-Amz-Signature"),
            request.value("X-Amz-Algorithm") == SignatureScope.algorithm,
            let date = request.value("X-Amz-Date"), let stamp = SigningTime(text: date),
            let lifetime = request.value("X-Amz-Expires").flatMap(Int64.init),
            (0...Self.longestLifetime).contains(lifetime)
        else { throw .accessDenied("The request carries no complete query signature.") }
        guard request.value("X-Amz-Credential") == "\(scope.accessKey)/\(scope.text(at: stamp))",
            scope.isSignature(given, of: unsigned.canonicalText, at: stamp)
        else { throw .signatureDoesNotMatch }
        let end = stamp.time + .seconds(lifetime)
        guard now < end else { throw Self.expired(lifetime: lifetime, end: end, now: now) }
    }

    private static func expired(lifetime: Int64, end: WallTime, now: WallTime) -> StoreError {
        .accessDenied(
            "Request has expired",
            details: [
                .init(name: "X-Amz-Expires", text: String(lifetime)), .init(name: "Expires", text: end.rfc3339),
                .init(name: "ServerTime", text: now.rfc3339),
            ])
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
