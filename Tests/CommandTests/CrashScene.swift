import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// A machine with a destination of some kind, and what its server has.
struct CrashScene: Sendable {
    let place: Place
    /// The SHA-256 of the contents that have arrived, as often as they did.
    let stored: @Sendable () throws -> [Digest]
    /// Uploads that were begun, have bytes, and nobody will end.
    var leftovers: @Sendable () throws -> [String] = { [] }
    /// What else must hold, after so many files.
    var check: @Sendable (Int) throws -> Void = { _ in }

    static func content(_ path: FilePath) throws -> Digest {
        Checksum.sha256(try Data(contentsOf: URL(fileURLWithPath: path.string)))
    }

    /// Of these uploads of a store those that have parts. One without may be left over: the process died before it learned
    /// its id.
    static func withParts(_ uploads: [String], in store: FilePath) throws -> [String] {
        try uploads.filter { id in
            let folder = store.appending("uploads").appending(id)
            return try FileManager.default.contentsOfDirectory(atPath: folder.string).contains { $0.hasPrefix("part-") }
        }
    }
}

extension CrashKind {
    /// Runs `body` beside the servers of this kind, on a machine that is configured for them.
    func withScene(_ body: @Sendable @escaping (CrashScene) async throws -> Void) async throws {
        let place = try Place()
        let store = place.folder.path.appending("store")
        switch self {
        case .r2, .r2Parts:
            try await withSandbox(store) { sandbox, port in
                try configure(place, port)
                try await body(
                    CrashScene(
                        place: place, stored: { try sandbox.objects().map { try CrashScene.content($0.path) } },
                        leftovers: { try CrashScene.withParts(sandbox.openUploads(), in: store) }))
            }
        case .s3, .s3Parts: try await withS3(place, store, body)
        case .form, .tus: try await withGigHive(place, store, body)
        case .folder:
            try configure(place, 0)
            try await body(
                CrashScene(
                    place: place, stored: { Place.files(below: place.library).values.map { Checksum.sha256($0) } }))
        case .vopi: try await withVOPI(place, store, body)
        case .roboscope: try await withRoboscope(place, store, body)
        }
    }

    private func configure(_ place: Place, _ port: Int, more: String = "", to destination: String = "store") throws {
        try place.configure(
            text: """
                state_dir: state
                log: { level: debug }
                destinations:
                  store: { \(configuration("http://127.0.0.1:\(port)")) }
                \(more)
                watch:
                  - { path: drop, settle: 0s }
                routes:
                \(routes(to: destination))
                """)
    }

    private func withS3(
        _ place: Place, _ store: FilePath, _ body: @Sendable @escaping (CrashScene) async throws -> Void
    ) async throws {
        let account = S3Sandbox.Account(
            accessKey: "AKIDEXAMPLE", secretKey: Secret("sandbox-secret-93f1"), region: "us-east-1")
        let sandbox = try S3Sandbox(directory: store, account: account)
        try await whileServing({ try await sandbox.run() }) {
            try configure(place, try await sandbox.port())
            try await body(
                CrashScene(
                    place: place, stored: { try sandbox.objects().map { try CrashScene.content($0.path) } },
                    leftovers: { try CrashScene.withParts(sandbox.openUploads(), in: store) }))
        }
    }

    private func withGigHive(
        _ place: Place, _ store: FilePath, _ body: @Sendable @escaping (CrashScene) async throws -> Void
    ) async throws {
        let password = Secret(ConfigText.apiKey)
        let sandbox = try GigHiveSandbox(
            directory: store, passwords: ["admin": password, "uploader": password, "viewer": password])
        try await whileServing({ try await sandbox.run() }) {
            try configure(place, try await sandbox.port())
            try await body(
                CrashScene(
                    place: place,
                    stored: {
                        try sandbox.assets().flatMap { asset in
                            try asset.entries.map { _ in try CrashScene.content(asset.path) }
                        }
                    },
                    leftovers: { sandbox.openUploads() }))
        }
    }

    private func withVOPI(
        _ place: Place, _ store: FilePath, _ body: @Sendable @escaping (CrashScene) async throws -> Void
    ) async throws {
        let sandbox = try VOPISandbox(
            directory: store, apiKey: Secret(ConfigText.apiKey), credits: 1000,
            rules: VOPIRules(generation: .apiKey, pace: .polls(steps: 8)))
        try await whileServing({ try await sandbox.run() }) {
            try configure(place, try await sandbox.port())
            try await body(
                CrashScene(
                    place: place,
                    stored: {
                        // A job that has ended takes its video away.
                        let videos = Dictionary(
                            sandbox.videos().map { ($0.publicURL, $0.sha256) }, uniquingKeysWith: { $1 })
                        return sandbox.jobs().compactMap { videos[$0.videoURL] }
                    },
                    check: { files in
                        #expect(sandbox.jobs().count == files && sandbox.tally.charges == files)
                        for job in sandbox.jobs() { #expect(place.results(of: job.id)["product.json"] != nil) }
                    }))
        }
    }

    private func withRoboscope(
        _ place: Place, _ store: FilePath, _ body: @Sendable @escaping (CrashScene) async throws -> Void
    ) async throws {
        let sandbox = RoboscopeSandbox()
        try await withSandbox(store) { spiral, port in
            try await whileServing({ try await sandbox.run() }) {
                let url = "http://127.0.0.1:\(try await sandbox.port())/api/v1"
                try configure(
                    place, port, more: "  spaces: { type: roboscope, url: \"\(url)\", storage: store }", to: "spaces")
                try await body(
                    CrashScene(
                        place: place, stored: { try spiral.objects().map { try CrashScene.content($0.path) } },
                        leftovers: { try CrashScene.withParts(spiral.openUploads(), in: store) },
                        check: { files in
                            let spaces = sandbox.spaces()
                            #expect(spaces.count == files && Set(spaces.map(\.key)).count == files)
                            for space in spaces {
                                #expect(space.modelGLBURL?.hasSuffix("/\(space.key).glb") ?? false, "\(space)")
                            }
                        }))
            }
        }
    }
}
