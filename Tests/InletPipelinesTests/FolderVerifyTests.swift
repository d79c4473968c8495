import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// One file of a folder that cannot be looked at, among others that can.
@Suite(.timeLimit(.minutes(2))) struct FolderVerifyTests {
    @Test(arguments: [
        Errno.ioError, .permissionDenied, .notPermitted, .noSuchFileOrDirectory, .tooManySymbolicLinkLevels,
        .tooManyOpenFiles,
    ])
    func `an error that came with one file says nothing about the others`(_ code: Errno) {
        let error = SystemError(call: "read", path: "/library/b.bin", code: code)
        do throws(DeliveryError) {
            switch try Verification(error) {
            case .differs(let why): #expect(code == .ioError && why.hasPrefix("cannot be read: read /library/b.bin"))
            case .cannotTell(let why): #expect(error.isPermission && why.contains("/library/b.bin"))
            case .missing(let what): #expect(error.isMissing && what.contains("/library/b.bin"))
            case .same: Issue.record("nothing was compared")
            }
        } catch {
            // Asked again, and then unreachable alone: an outage would speak for the whole folder.
            #expect(error.verdict == .retry(after: nil))
            #expect([.tooManySymbolicLinkLevels, .tooManyOpenFiles].contains(code))
        }
    }

    @Test func `a loop of links in place of a folder leaves the other files to be looked at`() async throws {
        try await withPlace(.folder("size")) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            let loop = place.target.appending("loop").string
            try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
            var beyond = proof
            beyond.key = "loop/a.mp4"
            let question = VerifyOrder(proof: beyond)
            let error = await #expect(throws: DeliveryError.self) { _ = try await verifier.verify(question) }
            #expect(error?.verdict == .retry(after: nil))
            let other = try await verifier.verify(VerifyOrder(proof: proof))
            #expect(other == .same("length"))
        }
    }
}
