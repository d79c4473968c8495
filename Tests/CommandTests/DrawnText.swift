import Foundation
import InletTestSupport

/// What a program has drawn on a terminal so far.
final class DrawnText {
    private let terminal: PseudoTerminal
    private(set) var all = ""

    init(_ terminal: PseudoTerminal) { self.terminal = terminal }

    /// Waits until `text` has been drawn; what was drawn before is left out the next time.
    func wait(_ text: String, _ process: InletProcess) async throws {
        try await process.wait("'\(text)' is drawn") {
            all += terminal.drawn()
            return all.contains(text)
        }
    }

    func forget() {
        _ = terminal.drawn()
        all = ""
    }

    /// The lines of the last picture that was drawn whole; what colours are written of it is left in.
    var picture: [Substring] {
        let frames = all.components(separatedBy: "\u{1B}[H")
        return frames.count < 3 ? [] : Substring(frames[frames.count - 2]).split(separator: "\r\n")
    }
}
