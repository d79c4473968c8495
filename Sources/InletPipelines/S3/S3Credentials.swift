internal import Foundation
internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The keys that sign requests.
struct S3Credentials: Sendable, Hashable {
    var accessKey: Secret
    var secretKey: Secret
    /// For temporary keys (AWS STS); sent as `x-amz-security-token`.
    var sessionToken: Secret?
}

/// The source of the keys: the configuration, otherwise the environment, otherwise a profile of a credentials file.
enum CredentialsSource: Sendable, Hashable {
    case fixed(S3Credentials)
    case file(FilePath, profile: String)

    /// - Parameters:
    ///   - environment: returns the process's variables.
    ///   - home: the user's.
    /// - Throws: `SettingFault` when only some of the keys are configured, or none is found.
    init(
        _ values: Section<S3Kind>, environment: (String) -> String?, home: FilePath?
    ) throws(SettingFault) {
        func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        func configured(_ key: Secret?) -> Secret? { key.flatMap { $0.isEmpty ? nil : $0 } }
        let file =
            values.credentialsFile
            ?? variable("AWS_SHARED_CREDENTIALS_FILE").map { FilePath($0) }
            ?? home.map { Self.usualFile(home: $0) }
        switch (configured(values.accessKey), configured(values.secretKey)) {
        case (let access?, let secret?):
            let token = configured(values.sessionToken)
            self = .fixed(S3Credentials(accessKey: access, secretKey: secret, sessionToken: token))
            return
        case (.some, nil): throw values.fault(\.secretKey, "is needed beside access_key")
        case (nil, .some): throw values.fault(\.accessKey, "is needed beside secret_key")
        case (nil, nil): break
        }
        if let profile = values.profile, let file {
            self = .file(file, profile: profile)
        } else if let access = variable("AWS_ACCESS_KEY_ID"), let secret = variable("AWS_SECRET_ACCESS_KEY") {
            let token = variable("AWS_SESSION_TOKEN").map { Secret($0) }
            self = .fixed(S3Credentials(accessKey: Secret(access), secretKey: Secret(secret), sessionToken: token))
        } else if let file, values.credentialsFile != nil || Self.isReadable(file) {
            self = .file(file, profile: variable("AWS_PROFILE") ?? "default")
        } else {
            throw values.fault(
                \.accessKey,
                "is missing; set access_key and secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in "
                    + "the environment, or profile: of a credentials file")
        }
    }

    static func usualFile(home: FilePath) -> FilePath { home.appending(".aws").appending("credentials") }

    private static func isReadable(_ file: FilePath) -> Bool {
        // Checks only that it can be read.
        (try? DurableFile.read(file, limit: CredentialsFile.sizeLimit)) != nil
    }

    /// The current keys. Blocks for reading a small file.
    /// - Throws: `.credentials`, naming the file and the profile.
    func read() throws(DeliveryError) -> S3Credentials {
        let (path, profile): (FilePath, String)
        switch self {
        case .fixed(let credentials): return credentials
        case .file(let file, let name): (path, profile) = (file, name)
        }
        let bytes: [UInt8]
        do {
            bytes = try DurableFile.read(path, limit: CredentialsFile.sizeLimit)
        } catch {
            throw DeliveryError(.credentials, .unauthorized, "the credentials file cannot be read: \(error)")
        }
        let file = CredentialsFile(String(decoding: bytes, as: UTF8.self))
        guard let credentials = file.credentials(profile) else {
            let names = file.names.isEmpty ? "none" : file.names.joined(separator: ", ")
            throw DeliveryError(
                .credentials, .unauthorized,
                "\(path.display) has no profile '\(profile)' with aws_access_key_id and aws_secret_access_key "
                    + "(profiles there: \(names))")
        }
        return credentials
    }
}

/// The signing values for the requests of one second.
final class Signer: Sendable {
    let credentials: S3Credentials
    let scope: SigV4.Scope
    let key: MessageCode

    init(_ credentials: S3Credentials, _ scope: SigV4.Scope, _ key: MessageCode) {
        self.credentials = credentials
        self.scope = scope
        self.key = key
    }
}

/// The keys in use, and the signing key derived for a day. Safe from any thread.
final class SignerCache: Sendable {
    private let source: CredentialsSource
    private let state = Mutex<(credentials: S3Credentials?, signer: (second: Int64, Signer)?)>((nil, nil))

    init(_ source: CredentialsSource) { self.source = source }

    /// The signing values for a request now: thousands of small files a second share them. A key file is read once, and
    /// again after `forget`; the signing key of a day and region is derived once.
    func signer(at time: WallTime, region: String) throws(DeliveryError) -> Signer {
        let second = time.milliseconds / 1000
        if let (last, signer) = state.withLock({ $0.signer }), last == second, signer.scope.region == region {
            return signer
        }
        let known = state.withLock { $0 }
        let scope = SigV4.Scope(time: time.signingTime, region: region)
        let credentials = if let read = known.credentials { read } else { try source.read() }
        let usable = known.signer.flatMap { $0.1.scope.text == scope.text ? $0.1.key : nil }
        let signer = Signer(credentials, scope, usable ?? scope.key(credentials.secretKey))
        // Unless the keys were forgotten meanwhile.
        state.withLock {
            if $0.credentials == known.credentials { $0 = (credentials, (second, signer)) }
        }
        return signer
    }

    /// Reads the file again at the next request: its keys were refused, and may have been renewed.
    func forget() { state.withLock { $0 = (nil, nil) } }
}

/// The AWS tools' file with keys by profile ("Configuration and credential file settings", AWS CLI guide).
///
/// `[name]` begins a profile, also `[profile name]`; `key = value` sets a value; `#` and `;` begin a comment line. An
/// indented line belongs to the value above and is ignored. The last of several values counts.
struct CredentialsFile: Sendable {
    /// A larger file is not a credentials file.
    static let sizeLimit = 1 << 20

    private var profiles: [String: [String: String]] = [:]

    init(_ text: String) {
        var profile: String?
        for line in text.split(whereSeparator: \.isNewline) {
            guard let first = line.first, !first.isWhitespace, first != "#", first != ";" else { continue }
            if first == "[" {
                profile = line.firstIndex(of: "]").map { Self.name(line[line.index(after: line.startIndex)..<$0]) }
                if let profile, profiles[profile] == nil { profiles[profile] = [:] }
            } else if let profile, let equals = line.firstIndex(of: "=") {
                let key = Self.trimmed(line[..<equals]).lowercased()
                profiles[profile]?[key] = Self.trimmed(line[line.index(after: equals)...])
            }
        }
    }

    var names: [String] { profiles.keys.sorted() }

    /// The keys of a profile; nil when it is missing or incomplete.
    func credentials(_ profile: String) -> S3Credentials? {
        guard let values = profiles[profile], let access = values["aws_access_key_id"], !access.isEmpty,
            let secret = values["aws_secret_access_key"], !secret.isEmpty
        else { return nil }
        let token = values["aws_session_token"].flatMap { $0.isEmpty ? nil : Secret($0) }
        return S3Credentials(accessKey: Secret(access), secretKey: Secret(secret), sessionToken: token)
    }

    private static func name(_ text: Substring) -> String {
        let words = text.split(whereSeparator: \.isWhitespace)
        return words.count == 2 && words[0] == "profile" ? String(words[1]) : trimmed(text)
    }

    private static func trimmed(_ text: Substring) -> String { text.trimmingCharacters(in: .whitespacesAndNewlines) }
}
