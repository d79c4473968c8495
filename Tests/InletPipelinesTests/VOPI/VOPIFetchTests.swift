import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// How results get onto the disk.
@Suite(.timeLimit(.minutes(15))) struct VOPIFetchTests {
    private func result(_ place: VOPIPlace, _ notes: Notes = Notes()) async throws -> String {
        let (path, order) = try place.file()
        _ = try await place.deliver(path, order, notes)
        return try #require(place.sandbox.jobs().first).id
    }

    @Test func `names that a server makes up stay in the job's folder`() async throws {
        try await withVOPI(VOPIRules(hasHostileNames: true)) { place in
            let job = try await result(place)
            let files = try place.files(of: job)
            let made = Set(try place.pictures(of: job))
            #expect(try place.fetched(of: job).allSatisfy { made.contains($0) })
            // What JSON calls by one name is one picture.
            #expect(try place.product(of: job)["expected"] as? Int == files.count - 1)
            for name in files.keys {
                let parts = FilePath(name).components.map(\.string)
                #expect(parts.count <= 3 && parts.allSatisfy { !$0.hasPrefix(".") && $0.utf8.count <= 120 }, "\(name)")
                #expect(name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0 != "\\" }, "\(name)")
            }
            // Nothing beside the folder of the job.
            #expect(try FileManager.default.contentsOfDirectory(atPath: place.results.string) == [job])
            #expect(try place.product(of: job)["complete"] as? Bool == true)
        }
    }

    @Test func `links that have expired are asked for anew`() async throws {
        try await withVOPI { place in
            place.misbehave(.expiredURLs, at: .downloadURLs)
            let job = try await result(place)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(place.count(.downloadURLs) == 2)
        }
    }

    @Test(arguments: [FaultAction.truncateAnswer(afterBytes: 64), .damageAnswer(at: 100)])
    func `pictures that break off, or have another byte than they had, come whole in the end`(_ action: FaultAction)
        async throws
    {
        try await withVOPI { place in
            place.misbehave(action, at: .download, times: 3)
            let job = try await result(place)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(place.count(.download) == place.sandbox.pictures(of: job).count + 3)
        }
    }

    static let strangers: [FaultAction] = [
        .html, .garbage, .damageAnswer(at: 100), .reply(FaultReply(200, type: "image/png", body: "")),
        .reply(FaultReply(200, type: "image/png", body: "<!doctype html><title>Sign in</title>")),
    ]

    @Test(arguments: strangers.indices)
    func `what answers in the place of pictures is not stored as one`(_ index: Int) async throws {
        try await withVOPI { place, path, order, notes in
            place.misbehave(Self.strangers[index], at: .download, times: nil)
            let error = try await attempts(place, path, order, notes) { place.count(.downloadURLs) >= 2 }
            #expect(error == nil)
            let job = try #require(place.sandbox.jobs().first).id
            #expect(try place.files(of: job).values.allSatisfy(\.isEmpty), "a part-file of nothing may stay")
            #expect(try place.files(of: job).keys.allSatisfy { $0.contains(".inlet-") })
            // One that is not what it should be keeps none of the others away.
            #expect(place.count(.download) >= 2 * place.sandbox.pictures(of: job).count)
            place.sandbox.faults.clear()
            _ = try await place.deliver(path, order, notes)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `type and first bytes must be those of a picture, and of the one that it is called`() {
        let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 0x0D]
        let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0]
        let svg = Array("<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>".utf8)
        let rows: [(bytes: [UInt8], type: String?, ending: String?, isProved: Bool, isTaken: Bool)] = [
            (png, "image/png", "png", false, true), (png, nil, "png", false, true),
            (png, "binary/octet-stream", "png", false, true), (png, "text/html", "png", true, false),
            (png, "application/json", "png", true, false), (jpeg, "image/png", "png", false, false),
            // The store's own word for it, and its own mistake.
            (jpeg, "image/png", "png", true, true), (jpeg, "image/jpeg", nil, false, true),
            (jpeg, nil, "jpg", false, true), ([], "image/png", "png", true, false),
            (Array("<html>".utf8), "image/png", "png", true, false), (Array("{}".utf8), nil, nil, true, false),
            (svg, "image/svg+xml", "svg", false, true), (svg, "application/xml", "svg", false, true),
            (Array("<html><svg/></html>".utf8), "image/svg+xml", "svg", false, false),
            (Array("RIFF\0\0\0\0WEBPVP8 ".utf8), "image/webp", "webp", false, true),
            (Array("\0\0\0\u{1C}ftypavif".utf8), "image/avif", "avif", false, true),
            (Array("\0\0\0\u{1C}ftypisom".utf8), "video/mp4", "mp4", false, true),
            (Array("GIF89a".utf8), "image/gif", "gif", false, true), (Array("BM".utf8), nil, "bmp", false, true),
            ([0x4D, 0x4D, 0, 0x2A], nil, "tif", false, true),
        ]
        for row in rows {
            let head: DownloadHead = (row.bytes, row.type, row.isProved)
            #expect((MediaFormat.objection(to: head, ending: row.ending) == nil) == row.isTaken, "\(row)")
        }
    }

    /// Attempts until `condition` holds; stops early at an error, which it returns.
    private func attempts(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder, _ notes: Notes,
        until condition: () -> Bool = { false }
    ) async throws -> DeliveryError? {
        for _ in 1...600 where !condition() {
            switch try await place.attempt(path, order, notes.attempt()) {
            case .failure(let error): return error
            case .success(.delivered): throw DeliveryError(.giveUp, .internalFault, "delivered")
            case .success(.waiting(let until, _)): place.clock.advance(to: until)
            }
        }
        return nil
    }

    /// What keeps results away: links that are left out, one or all of them, and links to nothing.
    enum Absence: CaseIterable {
        case someLinks
        case allLinks
        case objects

        func begin(_ place: VOPIPlace) {
            switch self {
            case .someLinks: place.sandbox.rules.droppedLinks = 2
            case .allLinks: place.sandbox.rules.droppedLinks = 1000
            case .objects: place.misbehave(.status(404), at: .download, times: nil)
            }
        }

        func end(_ place: VOPIPlace) {
            place.sandbox.rules.droppedLinks = 0
            place.sandbox.faults.clear()
        }
    }

    @Test(arguments: Absence.allCases)
    func `results that are not there yet are waited for`(_ absence: Absence) async throws {
        try await withVOPI { place, path, order, notes in
            absence.begin(place)
            let error = try await attempts(place, path, order, notes) { place.count(.downloadURLs) >= 5 }
            #expect(error == nil)
            let job = try #require(place.sandbox.jobs().first).id
            #expect(try place.files(of: job)["product.json"] == nil, "a shop would take it for all there is")
            let saying = try await place.attempt(path, order, notes.attempt()).get().wait().saying
            #expect(saying?.contains("results of job \(job) are not there yet: ") == true, "\(saying ?? "")")
            absence.end(place)
            let proof = try await place.deliver(path, order, notes)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(proof.details?["files"] == String(try place.files(of: job).count))
            #expect(try place.product(of: job)["complete"] as? Bool == true)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test(arguments: Absence.allCases)
    func `results that never come fail the file after a day, and a retry fetches them without another job`(
        _ absence: Absence
    ) async throws {
        try await withVOPI { place, path, order, notes in
            absence.begin(place)
            _ = try await attempts(place, path, order, notes) { place.count(.downloadURLs) > 0 }
            let start = place.clock.now
            let error = try #require(try await attempts(place, path, order, notes))
            #expect(error.verdict == .giveUp)
            #expect(error.reason.contains("'inlet queue retry' fetches the results without another job"))
            #expect((.seconds(86_000) ... .seconds(90_000)).contains(place.clock.now - start))
            #expect(place.count(.downloadURLs) < 1000, "each look asks for all of them")
            absence.end(place)
            let entries = notes.entries
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            _ = try await place.deliver(path, order, notes)
            let job = try #require(place.sandbox.jobs().first).id
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            let tally = place.sandbox.tally
            #expect((tally.puts, tally.jobs, tally.charges) == (1, 1, 1))
        }
    }

    @Test func `a server that knows no links of a job that it has just shown costs no other job`() async throws {
        try await withVOPI { place, path, order, notes in
            let missing = FaultReply.vopi(404, error: "NOT_FOUND", message: "Job not found")
            place.misbehave(.reply(missing), at: .downloadURLs, times: nil)
            let error = try await attempts(place, path, order, notes) { place.count(.downloadURLs) >= 3 }
            #expect(error == nil)
            place.sandbox.faults.clear()
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `a server that says neither what a job made nor how much is not believed to have made nothing`()
        async throws
    {
        try await withVOPI(VOPIRules(generation: .apiKey, droppedLinks: 1000)) { place, path, order, notes in
            let error = try await attempts(place, path, order, notes) { place.count(.downloadURLs) >= 3 }
            #expect(error == nil && place.count(.downloadURLs) >= 3)
            place.sandbox.rules.droppedLinks = 0
            _ = try await place.deliver(path, order, notes)
            let job = try #require(place.sandbox.jobs().first).id
            #expect(try place.fetched(of: job) == place.pictures(of: job))
        }
    }

    @Test func `a picture that somebody deleted at the server meanwhile is not waited for`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            place.sandbox.advance(steps: 20)
            place.misbehave(.status(404), at: .download, times: nil)
            let error = try await attempts(place, path, order, notes) { place.count(.downloadURLs) >= 2 }
            #expect(error == nil)
            let job = try #require(place.sandbox.jobs().first).id
            _ = try await place.api.deleteImage(job, frame: "hero", version: "transparent")
            place.sandbox.faults.clear()
            _ = try await place.deliver(path, order, notes)
            #expect(try place.product(of: job)["complete"] as? Bool == true)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
        }
    }

    @Test func `what the server says of the product is waited for like a picture`() async throws {
        try await withVOPI(VOPIRules(listsMetadata: false)) { place in
            place.misbehave(.status(500), at: .metadata, times: 2)
            let job = try await result(place)
            #expect(place.count(.metadata) == 3)
            #expect(try place.product(of: job)["platforms"] != nil)
        }
    }

    @Test func `links to other places than the rules allow end it, and a retry fetches without another job`()
        async throws
    {
        try await withVOPI { place, path, order, notes in
            place.misbehave(.partURLs(.origin("ftp://storage.example")), at: .downloadURLs)
            for _ in 1...50 where place.count(.downloadURLs) == 0 {
                guard case .success(.waiting(let until, _)) = try await place.attempt(path, order, notes.attempt())
                else {
                    break
                }
                place.clock.advance(to: until)
            }
            #expect(place.count(.download) == 0)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    @Test func `a server without a word on the product makes no difference to the pictures`() async throws {
        try await withVOPI(VOPIRules(hasMetadata: false)) { place in
            let job = try await result(place)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(try place.product(of: job)["platforms"] == nil)
        }
    }

    @Test func `pictures that are there already are not fetched again`() async throws {
        try await withVOPI { place in
            let job = try await result(place)
            let before = place.count(.download)
            let results = VOPIResults(api: place.api, client: place.client, pool: place.pool)
            let summary = try await results.fetch(job: job, into: place.results.appending(job))
            #expect(place.count(.download) == before)
            #expect(summary.missing == [])
            #expect(Set(summary.files) == Set(try place.files(of: job).keys))
        }
    }
}

struct VOPINameTests {
    @Test func `names keep what is harmless`() {
        let rows = [
            ("hero", "hero"), ("frame_00123", "frame_00123"), ("white-studio", "white-studio"), ("größe", "größe"),
            ("../../etc/passwd", "_.._etc_passwd"), ("a/b\\c", "a_b_c"), ("", "x"), (".", "x"), ("..", "x"),
            ("///", "x"),
            (".hidden", "hidden"), ("-rf", "rf"), ("a\u{0}b\n", "a_b_"), ("con", "_con"), ("dots...", "dots"),
            ("a:b*c?", "a_b_c_"), ("\u{202E}gnp", "_gnp"),
        ]
        for (text, name) in rows { #expect(VOPIManifest.safeName(text, or: "x") == name, "\(text)") }
    }

    @Test func `no text makes a name that leaves its folder`() {
        var generator = SeededGenerator(seed: 11)
        let alphabet: [Character] = [
            "/", ".", "..", "\\", "\u{0}", "a", "é", "日", "e\u{301}", "\n", "-", "_", " ", "👩‍👩‍👧",
        ].flatMap { Array($0) }
        for _ in 1...5000 {
            let count = Int.random(in: 0...250, using: &generator)
            let text = String((0..<count).compactMap { _ in alphabet.randomElement(using: &generator) })
            let name = VOPIManifest.safeName(text, or: "x")
            #expect((1...101).contains(name.utf8.count))
            #expect(!name.hasPrefix(".") && !name.contains("/") && !name.contains("\u{0}") && !name.contains("\\"))
            #expect(FilePath(name).components.count == 1)
        }
    }

    @Test func `links make names once, and the same ones when they are asked for anew`() throws {
        func downloads(_ query: String, _ extra: String = "") throws -> VOPIDownloads {
            let json = #"""
                {"jobId":"j","expiresIn":60,"frames":[
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/a.png?\#(query)"},
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/b.jpg?\#(query)"},
                {"frameId":"FRAME_1","downloadUrl":"https://s.example/j/c.png?\#(query)"},
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/a.png?\#(query)"}\#(extra)],
                "commercialImages":{"a/b":{"real":"https://s.example/j/d.webp?\#(query)"},
                "a_b":{"real":"https://s.example/j/e.php?\#(query)"}}}
                """#
            let value = try #require(VOPIValue(Array(json.utf8)))
            let rules = URLRules.configured(allowHTTP: false)
            return try #require(VOPIDownloads(value, rules: rules))
        }
        var manifest = VOPIManifest()
        manifest.add(try downloads("sig=1"))
        #expect(
            manifest.entries.map(\.path) == [
                "images/a_b/real.webp", "images/a_b/real.png", "frames/frame_1.png", "frames/frame_1.jpg",
                "frames/FRAME_1_2.png",
            ])
        let before = manifest
        manifest.add(try downloads("sig=2"))
        #expect(manifest == before)
        manifest.add(try downloads("sig=3", #",{"frameId":"frame_1","downloadUrl":"https://s.example/j/z.png"}"#))
        #expect(manifest.entries.dropLast() == before.entries[...])
        #expect(manifest.entries.last?.path == "frames/frame_1_3.png")
        #expect(!manifest.entries.contains { $0.object.contains("sig") })
    }
}
