import InletCore
import InletPipelines
import InletSandbox
import Testing

@Suite(.timeLimit(.minutes(8))) struct ChecklistGapsTests {
    @Test(
        arguments: [(200, .badAnswer), (201, .badAnswer), (299, .badAnswer), (400, .badRequest)] as [(Int, ErrorCode)])
    func `an answer of any 2xx is judged by what it says, any other by its number`(
        _ status: Int, _ code: ErrorCode
    ) async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(status), at: .create)) { place in
            let (path, order) = try place.file(Place.part + 1)
            #expect(try await place.failure(path, order)?.code == code)
        }
    }
}
