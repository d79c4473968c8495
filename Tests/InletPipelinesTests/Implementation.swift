import Testing

/// One way to configure one type of destination; the contract holds for each.
struct Implementation: Sendable, CustomTestStringConvertible {
    var type: String
    var values: [String: String]

    var testDescription: String {
        ([type] + values.keys.sorted().map { "\($0): \(values[$0] ?? "")" }).joined(separator: " ")
    }

    static let all: [Implementation] = [
        .r2("seed"), .r2("r2"), .r2("v1"), .r2("v1", verify: "size"), .s3("md5"), .s3("crc32c"), .s3("sha256"),
        .s3("size"), .s3("md5", ifExists: "version"), .s3("md5", ifExists: "fail"), .s3("md5", ifExists: "skip-same"),
        .gigHive("multipart"), .gigHive("tus"), .vopi("api-key"), .vopi("bearer"), .roboscope,
        .folder("read-back"), .folder("size"), .memory,
    ]

    /// Those with a step between the order and the first byte, at which a test can change the source.
    static let staged = all.filter { $0.values["transport"] != "multipart" && $0.sendsBytes }

    /// GigHive and VOPI refuse empty files.
    var takesEmptyFiles: Bool { !["gighive", "vopi"].contains(type) }

    /// Roboscope registers what another destination holds: of the source it only asks whether it still is what was admitted.
    var sendsBytes: Bool { type != "roboscope" }

    static func r2(_ dialect: String, verify: String = "md5") -> Implementation {
        Implementation(type: "r2", values: ["dialect": dialect, "verify": verify])
    }

    static func s3(_ verify: String = "md5", ifExists: String = "overwrite") -> Implementation {
        Implementation(type: "s3", values: ["verify": verify, "if_exists": ifExists])
    }

    static func gigHive(_ transport: String) -> Implementation {
        Implementation(type: "gighive", values: ["transport": transport])
    }

    static func folder(_ verify: String) -> Implementation {
        Implementation(type: "folder", values: ["verify": verify])
    }

    /// - Parameter generation: which of the two servers it is, by its login: `api-key` or `bearer`.
    static func vopi(_ generation: String) -> Implementation {
        Implementation(type: "vopi", values: ["generation": generation])
    }

    /// The kind of the tests' own.
    static let memory = Implementation(type: "memory", values: [:])

    /// A model that is stored already.
    static let roboscope = Implementation(type: "roboscope", values: [:])
}
