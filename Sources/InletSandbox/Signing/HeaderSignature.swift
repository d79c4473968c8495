import HTTPTypes
import Hummingbird
import InletCore

/// How the body of a signed request is covered: `x-amz-content-sha256`.
enum PayloadHash: Sendable, Equatable {
    case unsigned
    /// Lower-case hexadecimal.
    case sha256(String)
}

/// Verifies `Authorization` fields by AWS Signature Version 4 (AWS, "Authenticating requests: using the Authorization
/// header"), with the refusals that S3 gives.
struct HeaderVerifier: Sendable {
    /// How far the client's clock may be from the server's: 15 minutes.
    static let allowedSkew = Duration.seconds(900)

    let scope: SignatureScope
    /// What `x-amz-security-token` must be; nil = there must be none.
    let sessionToken: Secret?

    /// - Parameter request: The decoded method, path, query and host of `fields`.
    func verify(_ request: SignableRequest, _ fields: HTTPFields, now: WallTime) throws(StoreError) -> PayloadHash {
        guard let authorization = fields[.authorization] else {
            throw .accessDenied("The request carries no signature.")
        }
        let given = try HeaderSignature(authorization)
        guard given.accessKey == scope.accessKey else { throw .invalidAccessKey(given.accessKey) }
        guard let date = fields[.amzDate], let stamp = SigningTime(text: date) else {
            throw .accessDenied("AWS authentication requires a valid x-amz-date.")
        }
        try checkScope(given, stamp)
        let payload = try Self.payload(fields)
        try checkCoverage(given, fields)
        guard scope.isSignature(given.signature, of: Self.canonical(request, fields, given), at: stamp) else {
            throw .signatureDoesNotMatch
        }
        guard max(stamp.time - now, now - stamp.time) <= Self.allowedSkew else {
            throw .timeTooSkewed(request: stamp.text, server: now.rfc3339)
        }
        try checkToken(fields[.amzSecurityToken])
        return payload
    }

    private func checkScope(_ given: HeaderSignature, _ stamp: SigningTime) throws(StoreError) {
        guard given.region == scope.region else {
            throw .malformedAuthorization(
                "the region '\(given.region)' is wrong; expecting '\(scope.region)'", region: scope.region)
        }
        guard given.date == stamp.text.prefix(8), given.service == "s3", given.ending == "aws4_request" else {
            throw .malformedAuthorization("the scope is not <date of x-amz-date>/<region>/s3/aws4_request")
        }
    }

    private static func payload(_ fields: HTTPFields) throws(StoreError) -> PayloadHash {
        guard let text = fields[.amzContentSHA256] else {
            throw .badRequest("Missing required header for this request: x-amz-content-sha256")
        }
        if text == "UNSIGNED-PAYLOAD" { return .unsigned }
        guard !text.hasPrefix("STREAMING-") else { throw .notImplemented("A body in signed chunks") }
        guard Digest(.sha256, hex: text)?.bytes.count == 32 else {
            throw .invalidArgument("x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a SHA-256 in hexadecimal.")
        }
        return .sha256(text.lowercased())
    }

    /// `host` and every `x-amz-` field must be covered.
    private func checkCoverage(_ given: HeaderSignature, _ fields: HTTPFields) throws(StoreError) {
        let needed = ["host"] + fields.map(\.name.canonicalName).filter { $0.hasPrefix("x-amz-") }
        guard let missing = needed.first(where: { !given.signedHeaders.contains($0) }) else { return }
        throw .accessDenied(
            "There were headers present in the request which were not signed",
            details: [.init(name: "HeadersNotSigned", text: missing)])
    }

    private func checkToken(_ given: String?) throws(StoreError) {
        guard SigningSecret.areEqual(given ?? "", sessionToken?.reveal() ?? "") else {
            throw StoreError(
                status: 400, code: "InvalidToken", message: "The provided token is malformed or otherwise invalid.")
        }
    }

    static func canonical(_ request: SignableRequest, _ fields: HTTPFields, _ given: HeaderSignature) -> String {
        let lines = given.signedHeaders.map { name in
            let value = name == "host" ? request.host : HTTPField.Name(name).flatMap { fields[$0] } ?? ""
            // Leading, trailing and repeated blanks do not count.
            return "\(name):\(value.split(separator: " ").joined(separator: " "))\n"
        }
        return [
            request.method, URIText.encodePath(request.path), request.canonicalQuery, lines.joined(),
            given.signedHeaders.joined(separator: ";"), fields[.amzContentSHA256] ?? "",
        ].joined(separator: "\n")
    }
}

/// The pieces of `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
struct HeaderSignature: Equatable {
    var accessKey: String
    var date: String
    var region: String
    var service: String
    var ending: String
    var signedHeaders: [String]
    var signature: String

    init(_ authorization: String) throws(StoreError) {
        let prefix = SignatureScope.algorithm + " "
        guard authorization.hasPrefix(prefix) else {
            throw .malformedAuthorization("only \(SignatureScope.algorithm) is understood")
        }
        var pairs: [String: String] = [:]
        for item in authorization.dropFirst(prefix.count).split(separator: ",") {
            let halves = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            pairs[String(halves[0].filter { $0 != " " })] = halves.count == 2 ? String(halves[1]) : ""
        }
        let credential = (pairs["Credential"] ?? "").split(separator: "/").map(String.init)
        guard credential.count >= 5, let headers = pairs["SignedHeaders"], let signature = pairs["Signature"] else {
            throw .malformedAuthorization("Credential, SignedHeaders and Signature are needed")
        }
        // A key id may hold slashes; the scope is what stands after it.
        (date, region) = (credential[credential.count - 4], credential[credential.count - 3])
        (service, ending) = (credential[credential.count - 2], credential[credential.count - 1])
        accessKey = credential.dropLast(4).joined(separator: "/")
        signedHeaders = headers.split(separator: ";").map(String.init)
        self.signature = signature
    }
}

extension StoreError {
    static func invalidAccessKey(_ id: String) -> Self {
        Self(
            status: 403, code: "InvalidAccessKeyId",
            message: "The AWS Access Key Id you provided does not exist in our records.",
            details: [Detail(name: "AWSAccessKeyId", text: id)])
    }
    static func malformedAuthorization(_ reason: String, region: String? = nil) -> Self {
        Self(
            status: 400, code: "AuthorizationHeaderMalformed",
            message: "The authorization header is malformed; \(reason).",
            details: region.map { [Detail(name: "Region", text: $0)] } ?? [])
    }
    static func timeTooSkewed(request: String, server: String) -> Self {
        Self(
            status: 403, code: "RequestTimeTooSkewed",
            message: "The difference between the request time and the current time is too large.",
            details: [
                Detail(name: "RequestTime", text: request), Detail(name: "ServerTime", text: server),
                Detail(name: "MaxAllowedSkewMilliseconds", text: "900000"),
            ])
    }
    static func invalidArgument(_ message: String) -> Self {
        Self(status: 400, code: "InvalidArgument", message: message)
    }
}
