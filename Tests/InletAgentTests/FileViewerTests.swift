import Dispatch
import InletTestSupport
import Testing

@testable import InletAgent

/// Looks at files for people.
@Suite struct FileViewerTests {
    @Test func `a look that hangs is given up, and while two hang there is no answer at once`() async throws {
        let viewer = FileViewer()
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            let found = await viewer.look(within: .milliseconds(10)) { () -> Int in
                gate.wait()
                return 1
            }
            #expect(found == nil)
        }
        #expect(await viewer.look(within: .seconds(60)) { 1 } == nil, "both still hang")
        for _ in 0..<2 { gate.signal() }
        try await eventually("they have ended") { await viewer.look(within: .seconds(60)) { 1 } == 1 }
    }
}
