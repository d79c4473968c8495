import HTTPTypes

extension HTTPField.Name {
    static let amzDate = amz("date")
    static let amzContentSHA256 = amz("content-sha256")
    static let amzSecurityToken = amz("security-token")
    static let amzRequestID = amz("request-id")
    static let amzCopySource = amz("copy-source")
    static let amzChecksumCRC32C = amz("checksum-crc32c")
    static let amzChecksumSHA256 = amz("checksum-sha256")

    /// `x-amz-<rest>`. Every name above is a valid token, so the fallback is never taken.
    private static func amz(_ rest: String) -> HTTPField.Name { HTTPField.Name("x-amz-" + rest) ?? .eTag }
}

/// Fields that a client gives with an object and that are kept with it.
enum ObjectAttributes {
    private static let kept: Set<String> = [
        "cache-control", "content-disposition", "content-encoding", "content-language", "expires", "x-amz-acl",
        "x-amz-storage-class", "x-amz-tagging", "x-amz-website-redirect-location",
    ]
    /// Kept, but never shown by GET and HEAD.
    private static let silent: Set<String> = ["x-amz-acl", "x-amz-tagging"]

    /// By lower-case names.
    static func of(_ fields: HTTPFields) -> [String: String] {
        var attributes: [String: String] = [:]
        for field in fields {
            let name = field.name.canonicalName
            guard kept.contains(name) || name.hasPrefix("x-amz-meta-") else { continue }
            attributes[name] = attributes[name].map { "\($0),\(field.value)" } ?? field.value
        }
        return attributes
    }

    /// What GET and HEAD give back; the class STANDARD is not told.
    static func shown(_ attributes: [String: String]) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in attributes where !silent.contains(name) {
            guard let field = HTTPField.Name(name), (name, value) != ("x-amz-storage-class", "STANDARD") else {
                continue
            }
            fields[field] = value
        }
        return fields
    }
}
