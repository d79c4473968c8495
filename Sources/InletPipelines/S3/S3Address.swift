internal import InletCore
internal import InletTransfer

/// Where a bucket is: endpoint, style and region (AWS, "Virtual hosting of buckets").
enum S3Address {
    enum Style: String, Sendable, CaseIterable {
        case auto
        /// `https://endpoint/bucket/key`
        case path
        /// `https://bucket.endpoint/key`
        case virtual
    }

    /// A name that can stand in a path; stores differ in what else they take.
    static func isBucket(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255 && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#%\\@:".utf8.contains($0) }
    }

    /// The configured endpoint, or AWS's in the region.
    static func endpoint(_ text: String?, region: String?, _ rules: URLRules) throws(SettingFault) -> HTTPURL {
        if let text { return try url(text, "endpoint", rules) }
        guard let region, region != "auto" else {
            throw SettingFault(key: "endpoint", message: "is missing; set it, or 'region' for AWS")
        }
        guard region.utf8.allSatisfy({ isHostByte($0) }) else {
            throw SettingFault(key: "region", message: "is not the name of a region")
        }
        let suffix = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
        return try url("https://s3.\(region).\(suffix)", "region", rules)
    }

    /// What keys are appended to.
    static func base(
        _ endpoint: HTTPURL, bucket: String, _ style: Style, _ rules: URLRules
    ) throws(SettingFault) -> HTTPURL {
        let isVirtual =
            switch style {
            case .path: false
            case .virtual: true
            // A bucket with dots does not match AWS's certificate.
            case .auto: isAmazon(endpoint.host) && !bucket.contains(".")
            }
        guard isVirtual else { return endpoint.appending(path: bucket) }
        let prefix = "\(endpoint.scheme)://"
        return try url("\(prefix)\(bucket).\(endpoint.redacted.dropFirst(prefix.count))", "bucket", rules)
    }

    /// The region that an endpoint's name speaks of: `s3.eu-west-1.amazonaws.com`, `s3.us-west-004.backblazeb2.com`.
    static func region(of endpoint: HTTPURL) -> String {
        let labels = endpoint.host.split(separator: ".").filter { $0 != "dualstack" }
        if endpoint.host.hasSuffix(".r2.cloudflarestorage.com") { return "auto" }
        let isAddress = labels.allSatisfy { $0.allSatisfy(\.isNumber) } || endpoint.host.contains(":")
        return !isAddress && labels.count >= 4 && labels[0] == "s3" ? String(labels[1]) : "us-east-1"
    }

    static func url(_ text: String, _ key: String, _ rules: URLRules) throws(SettingFault) -> HTTPURL {
        do {
            return try HTTPURL(text, rules: rules)
        } catch {
            throw SettingFault(key, error)
        }
    }

    private static func isAmazon(_ host: String) -> Bool {
        [".amazonaws.com", ".amazonaws.com.cn"].contains { host.hasSuffix($0) }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
    }
}
