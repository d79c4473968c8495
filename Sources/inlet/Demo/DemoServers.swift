import Foundation
import InletCore
import InletSandbox
import SystemPackage

/// The loopback servers of the demo, and what has arrived there.
struct DemoServers: Sendable {
    /// Where each listens on 127.0.0.1.
    struct Ports: Sendable {
        var spiral: Int
        var s3: Int
        var gigHive: Int
        var vopi: Int
        var roboscope: Int
    }

    // The servers are on loopback and take only these; they protect nothing.
    static let apiKey = "demo-key"
    static let accessKey = "demo"
    static let secretKey = "demo-secret"
    static let bucket = "archive"
    static let password = "demo-password"

    private let spiral: SpiralSandbox
    private let s3: S3Sandbox
    private let gigHive: GigHiveSandbox
    private let vopi: VOPISandbox
    private let roboscope = RoboscopeSandbox()

    /// How long VOPI's sandbox takes for each of its steps: long enough to be seen.
    private static let pace = Duration.milliseconds(400)

    /// - Throws: When a folder of a server cannot be made, read or written.
    init(_ place: DemoPlace) throws {
        spiral = try SpiralSandbox(directory: place.store, apiKey: Secret(Self.apiKey))
        // Stores of one's own sign for this region, and so does the agent where nothing else is said.
        s3 = try S3Sandbox(
            directory: place.archive,
            account: .init(
                bucket: Self.bucket, accessKey: Self.accessKey, secretKey: Secret(Self.secretKey), region: "us-east-1"))
        let password = Secret(Self.password)
        gigHive = try GigHiveSandbox(
            directory: place.gigHive, logins: GigHiveLogins(admin: password, uploader: password, viewer: password))
        vopi = try VOPISandbox(
            directory: place.vopi, credits: 1000, rules: VOPIRules(pace: .clock(step: Self.pace), progress: .full))
    }

    /// What a person gets who logs in to VOPI: the seed of the agent's own tokens.
    func signIn() -> Secret { vopi.signIn().refreshToken }

    /// Serves while `body` runs, or fails before it.
    func serve(_ body: @Sendable @escaping (Ports) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await spiral.run() }
            group.addTask { try await s3.run() }
            group.addTask { try await gigHive.run() }
            group.addTask { try await vopi.run() }
            group.addTask { try await roboscope.run() }
            group.addTask { try await body(try await ports()) }
            try await group.next()
            group.cancelAll()
            while (try? await group.next()) != nil {}
        }
    }

    private func ports() async throws -> Ports {
        Ports(
            spiral: try await spiral.port(), s3: try await s3.port(), gigHive: try await gigHive.port(),
            vopi: try await vopi.port(), roboscope: try await roboscope.port())
    }

    /// The file that holds the object of the Spiral store that a public address names.
    func stored(atURL url: String) -> FilePath? {
        guard let marker = url.firstRange(of: "/public/") else { return nil }
        let key = url[marker.upperBound...].removingPercentEncoding
        return spiral.objects().first { $0.key == key }?.path
    }

    /// The pictures that VOPI made of the video with this content, newest job first.
    func pictures(of video: Digest) -> (job: String, files: [FilePath])? {
        for job in vopi.jobs().reversed() {
            let pictures = vopi.pictures(of: job.id).filter { $0.source == video }
            if !pictures.isEmpty { return (job.id, pictures.map(\.object.path)) }
        }
        return nil
    }

    /// The space of this key.
    func space(_ key: String) -> RoboscopeSandbox.Space? { roboscope.spaces().last { $0.key == key } }

    /// The file that holds what a delivery to `destination` stored; nil where there is none.
    ///
    /// - Parameters:
    ///   - key: The delivery's.
    ///   - label: What the file is called at GigHive, which goes by no keys.
    func stored(at destination: String, key: String, label: String) -> FilePath? {
        switch destination {
        case "stage": gigHive.assets().last { $0.entries.contains { $0.label == label } }?.path
        case "archive": s3.objects().first { $0.key == key }?.path
        default: spiral.objects().first { $0.key == key }?.path
        }
    }
}
