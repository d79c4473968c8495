import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// How results get onto the disk.
@Suite(.timeLimit(.minutes(8))) struct VOPIFetchTests {
    private func result(_ place: VOPIPlace, _ notes: Notes = Notes()) async throws -> String {
        let (path, order) = try place.file()
        _ = try await place.deliver(path, order, notes)
        return try #require(place.sandbox.jobs().first).id
    }

    @Test func `names that a server makes up stay in the job's folder`() async throws {
        try await withVOPI(VOPIRules(names: .hostile)) { place in
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

    @Test func `pictures that break off are gone on with`() async throws {
        try await withVOPI { place in
            place.misbehave(.truncateAnswer(afterBytes: 64), at: .download, times: 3)
            let job = try await result(place)
            #expect(try place.fetched(of: job) == place.pictures(of: job))
            #expect(place.count(.download) == place.sandbox.pictures(of: job).count + 3)
        }
    }

    @Test func `what the server leaves out is told, not waited for`() async throws {
        try await withVOPI(VOPIRules(droppedLinks: 2)) { place in
            let job = try await result(place)
            let made = place.sandbox.pictures(of: job).count
            #expect(try place.fetched(of: job).count == made - 2)
            let product = try place.product(of: job)
            #expect(product["complete"] as? Bool == false)
            #expect(product["expected"] as? Int == made)
        }
    }

    @Test func `pictures that are gone are named as missing`() async throws {
        try await withVOPI { place in
            place.misbehave(.status(404), at: .download, times: nil)
            let (path, order) = try place.file()
            let proof = try await place.deliver(path, order)
            let job = try #require(place.sandbox.jobs().first).id
            let made = place.sandbox.pictures(of: job).count
            #expect(proof.details?["missing"] == String(made))
            #expect((try place.product(of: job)["missing"] as? [String])?.count == made)
        }
    }

    @Test func `links to other places than the rules allow end it, and a retry fetches without another job`()
        async throws
    {
        try await withVOPI { place in
            place.misbehave(.partURLs(.origin("ftp://storage.example")), at: .downloadURLs)
            let (path, order) = try place.file()
            let notes = Notes()
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
