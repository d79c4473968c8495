/// What became of each capability of the reference documents that this version answers: S0, a client of a storage
/// service, S1, an upload queue that survives crashes, and S3, large uploads to a media server. Those of the others (S2,
/// S4) are named as families.
enum Checklist {
    enum Answer {
        /// Inlet does it, and these tests show it; `later` names the part of the row that is still to come.
        case shown(by: [String], later: String? = nil)
        /// Inlet does something better, which these tests show; `why` is a sentence about the difference.
        case superseded(by: [String], why: String)
        /// Another issue's work, as "issue N of 8: what it is".
        case later(String)
    }

    struct Row {
        let id: String
        let answer: Answer

        init(_ id: String, _ answer: Answer) {
            self.id = id
            self.answer = answer
        }
    }

    static let rows = storage + queue + gigHive

    /// The rows of the families that no part of this version answers, by the beginning of their ids.
    static let families: [String: Answer] = [
        "S2": .later("issue 3 of 8: Roboscope's spaces, work sessions and markers"),
        "S4": .later("issue 3 of 8: VOPI's jobs, from the upload to the results"),
    ]

    /// The ids that the checklist gives out, in its order.
    static let ids =
        (1...34).map { id("S0", $0) } + (1...36).map { id("S1", $0) }
        + (1...20).map { id("S3", $0) }

    private static func id(_ family: String, _ number: Int) -> String {
        "\(family).\(number < 10 ? "0" : "")\(number)"
    }
}
