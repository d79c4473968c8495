import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Whether services still have what was delivered to them.
@Suite(.timeLimit(.minutes(8))) struct ServiceVerifyTests {
    @Test func `an asset is compared with the server's record of it`() async throws {
        try await withGigHive { place in
            let (path, order) = try place.file(1000)
            var proof = try await place.deliver(path, order)
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            let same = try await verifier.verify(VerifyOrder(proof: proof, readsBytes: true))
            if case .same(let how) = same { #expect(how.contains("sha256")) } else { Issue.record("\(same)") }
            let id = try #require(proof.details?["asset_id"])
            proof.content = ContentHash(digest: Digest(.sha256, [UInt8](repeating: 7, count: 32)), partSize: nil)
            let other = try await verifier.verify(VerifyOrder(proof: proof))
            if case .differs = other {} else { Issue.record("\(other)") }
            proof.size = 1001
            #expect(
                try await verifier.verify(VerifyOrder(proof: proof)) == .differs("asset \(id) has 1000 bytes, not 1001")
            )
            proof.details?["asset_id"] = "4711"
            #expect(try await verifier.verify(VerifyOrder(proof: proof)) == .missing("asset 4711 is not there"))
            proof.details = nil
            if case .cannotTell = try await verifier.verify(VerifyOrder(proof: proof)) {
            } else {
                Issue.record("without an id there is nothing to ask for")
            }
        }
    }

    @Test func `a space must still have the URLs that were registered`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/model.glb", stored: "https://cdn.example/1")
            var proof = try await place.deliver(order)
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            if case .same = try await verifier.verify(VerifyOrder(proof: proof)) {
            } else {
                Issue.record("not the same")
            }
            _ = try await place.deliver(try place.order("atrium/model.glb", stored: "https://cdn.example/2"))
            guard case .differs(let reason) = try await verifier.verify(VerifyOrder(proof: proof)) else {
                Issue.record("another URL is registered")
                return
            }
            #expect(reason.contains("https://cdn.example/2") && reason.contains("model_glb_url"))
            let id = UUID().uuidString.lowercased()
            proof.details?["space_id"] = id
            #expect(try await verifier.verify(VerifyOrder(proof: proof)) == .missing("space \(id) is not there"))
        }
    }

    @Test func `results are compared with what is on the disk`() async throws {
        try await withVOPI { place in
            let (path, order) = try place.file()
            let proof = try await place.deliver(path, order)
            let job = try #require(proof.details?["job_id"])
            let asked = place.count(.job)
            for reads in [false, true] {
                let found = try await place.pipeline.verify(VerifyOrder(proof: proof, readsBytes: reads))
                if case .same(let how) = found { #expect(how.contains(job)) } else { Issue.record("\(found)") }
            }
            #expect(place.count(.status) == 2 && place.count(.job) == asked, "whether it is there is all that is asked")
            let name = try #require(try place.files(of: job).keys.sorted().first { $0 != "product.json" })
            let picture = place.results.appending(job).pushing(FilePath(name))
            var bytes = try Data(contentsOf: URL(fileURLWithPath: picture.string))
            bytes[bytes.count / 2] ^= 1
            try bytes.write(to: URL(fileURLWithPath: picture.string))
            if case .same = try await place.pipeline.verify(VerifyOrder(proof: proof)) {
            } else {
                Issue.record("looking sees lengths")
            }
            let read = try await place.pipeline.verify(VerifyOrder(proof: proof, readsBytes: true))
            if case .differs = read {} else { Issue.record("\(read)") }
            try FileManager.default.removeItem(atPath: picture.string)
            #expect(
                try await place.pipeline.verify(VerifyOrder(proof: proof)) == .missing("\(picture.string) is not there")
            )
        }
    }

    @Test func `results that never came are missing, whatever else is there`() async throws {
        try await withVOPI { place in
            let (path, order) = try place.file()
            let proof = try await place.deliver(path, order)
            let job = try #require(proof.details?["job_id"])
            place.sandbox.rules.droppedLinks = 2
            let folder = place.results.appending(job).string
            try FileManager.default.removeItem(atPath: folder)
            let results = VOPIResults(api: place.api, client: place.client, pool: place.pool)
            #expect(try await results.fetch(job: job, into: place.results.appending(job)).absent == 2)
            for reads in [false, true] {
                guard
                    case .missing(let why) = try await place.pipeline.verify(
                        VerifyOrder(proof: proof, readsBytes: reads))
                else {
                    Issue.record("two pictures are not there")
                    return
                }
                let all = place.sandbox.pictures(of: job).count
                #expect(why.hasPrefix("2 of \(all) results never came") && why.contains("inlet vopi download \(job)"))
            }
            place.sandbox.rules.droppedLinks = 0
            #expect(try await results.fetch(job: job, into: place.results.appending(job)).absent == 0)
            if case .same = try await place.pipeline.verify(VerifyOrder(proof: proof)) {
            } else {
                Issue.record("all are there now")
            }
            try FileManager.default.removeItem(atPath: folder + "/product.json")
            if case .missing = try await place.pipeline.verify(VerifyOrder(proof: proof)) {
            } else {
                Issue.record("nothing says what there is")
            }
        }
    }
}
