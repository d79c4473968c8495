import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Places of the services that do more than to store.
extension MatrixGround {
    func withGigHive(_ body: @escaping Body) async throws {
        let password = Secret(GigHivePlace.password)
        let sandbox = try GigHiveSandbox(
            directory: server, passwords: ["admin": password, "uploader": password, "viewer": password],
            rules: GigHiveRules(hookWait: .zero))
        let content = content(size)
        let isForm = contender == .form
        try await whileServing({ try await sandbox.run() }) {
            let file = try order("clip.mp4", content, ["label": "One", "org_name": "Band", "event_date": "2026-11-21"])
            var place = try place(file, port: try await sandbox.port()) { origin in
                try factory.place(
                    "gighive",
                    [
                        "url": .string(origin), "user": .string("uploader"), "password": .secret(password),
                        "transport": .string(isForm ? "multipart" : "tus"),
                    ])
            } check: { isThere in
                try Self.check(sandbox.assets(), isThere, content)
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: GigHiveOperation =
                    switch step {
                    case .open: isForm ? .upload : .tusCreate
                    case .send: isForm ? .upload : .tusPatch
                    case .commit: isForm ? .upload : .finalize
                    }
                sandbox.faults.add(GigHiveFault(action, at: operation, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    private static func check(_ assets: [GigHiveAsset], _ isThere: Bool, _ content: Data) throws {
        #expect(assets.map(\.entries.count) == (isThere ? [1] : []))
        guard isThere, let asset = assets.first else { return }
        #expect(try Data(contentsOf: URL(fileURLWithPath: asset.path.string)) == content)
    }

    func withVOPI(_ body: @escaping Body) async throws {
        let clock = HandClock()
        let content = content(size)
        let sandbox = try VOPISandbox(
            directory: server, apiKey: Secret(VOPIPlace.apiKey), credits: 100,
            rules: VOPIRules(generation: contender == .vopiKey ? .apiKey : .bearer, pace: .polls(steps: 8)),
            clock: { clock.now })
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let results = directory.path.appending("results")
        let client = HTTPClient(userAgent: "inlet-tests/1", longestStall: longestStall)
        defer { client.shutdown() }
        try await whileServing({ try await sandbox.run() }) {
            var place = try place(try order("clip.mp4", content), port: try await sandbox.port()) { origin in
                try vopi(origin, client, clock, seed: seed, results: results)
            } check: { isThere in
                try Self.check(sandbox, isThere, content, results)
            }
            place.clock = clock
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: VOPIOperation =
                    switch step {
                    case .open: .presign
                    case .send: .upload
                    case .commit: .createJob
                    }
                sandbox.faults.add(VOPIFault(action, at: operation, times: times))
            }
            // It logs in, which has tests of its own; what follows is on connections of its own.
            _ = try await place.pipeline.probe()
            place.proxy?.hangUp()
            try await body(place)
            // First, so that no connection of ours outlives its server.
            client.shutdown()
        }
    }

    private func vopi(
        _ origin: String, _ client: HTTPClient, _ clock: HandClock, seed: FilePath, results: FilePath
    ) throws -> any Pipeline {
        let login: [String: ConfigValue] =
            contender == .vopiKey
            ? ["api_key": .secret(Secret(VOPIPlace.apiKey))] : ["refresh_token_file": .string(seed.string)]
        let settings = try VOPISettings(
            section([
                "url": .string(origin), "auth": .section(section(login)), "results": .string(results.string),
            ]))
        let pool = BlockingPool(name: "vopi", threads: 4)
        // Two destinations keep two logins.
        let tokens = directory.path.appending(origin.hasPrefix("https") ? "tokens-tls" : "tokens")
        let api = VOPIAPI(settings, name: "products", client: client, pool: pool, tokens: tokens)
        return VOPIPipeline(api: api, client: client, pool: pool, now: { clock.now })
    }

    private static func check(_ sandbox: VOPISandbox, _ isThere: Bool, _ content: Data, _ results: FilePath) throws {
        let tally = sandbox.tally
        #expect(tally.jobs == (isThere ? 1 : 0) && tally.charges <= tally.jobs)
        guard isThere, let job = sandbox.jobs().first else { return }
        let video = try #require(sandbox.videos().first { $0.publicURL == job.videoURL })
        #expect(video.size == content.count && video.sha256 == Checksum.sha256(content))
        let folder = results.appending(job.id).string
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
        let fetched = Set(names.compactMap { FileManager.default.contents(atPath: folder + "/" + $0) })
        let pictures = try sandbox.pictures(of: job.id).map {
            try Data(contentsOf: URL(fileURLWithPath: $0.object.path.string))
        }
        #expect(!pictures.isEmpty && fetched.isSuperset(of: pictures))
    }

    func withRoboscope(_ body: @escaping Body) async throws {
        let token = Secret(RoboscopePlace.token)
        let sandbox = RoboscopeSandbox(token: token)
        let isModel = contender == .model
        try await whileServing({ try await sandbox.run() }) {
            var file = try order(
                isModel ? "atrium/model.glb" : "atrium/markers.json",
                isModel ? content(size) : Data(markerList(300).utf8),
                ["space": "atrium"])
            if isModel {
                let proof = Proof(key: "videos/clip.mp4", size: Int64(size), method: .md5Parts, url: "u:model")
                file.1.upstream = [
                    Upstream(destination: "spiral", path: file.1.path, mediaType: "model/gltf-binary", proof: proof)
                ]
            }
            var place = try place(file, port: try await sandbox.port()) { origin in
                try factory.place(
                    "roboscope",
                    ["url": .string(origin + "/api/v1"), "storage": .string("spiral"), "token": .secret(token)])
            } check: { isThere in
                #expect(sandbox.spaces().count == (isThere ? 1 : 0))
                if isModel { return #expect(sandbox.spaces().first?.modelGLBURL == (isThere ? "u:model" : nil)) }
                let stamps = sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
                #expect(stamps.count == (isThere ? 300 : 0) && Set(stamps).count == stamps.count)
                #expect(sandbox.sessions().count == (isThere ? 1 : 0))
            }
            place.faults = { sandbox.faults.injected }
            place.misbehave = { action, step, times in
                let operation: RoboscopeOperation =
                    switch step {
                    case .open: .listSpaces
                    case .send, .commit: isModel ? .updateSpace : .bulkMarkers
                    }
                sandbox.faults.add(RoboscopeFault(action, at: operation, times: times))
            }
            try await body(place)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }
}
