import InletDashboard

/// The JSON of every reading command: the manual prints `CommandOutput.document(CommandOutputs.all)`.
enum CommandOutputs {
    static let all = CommandOutput.all + VOPI.outputs + Roboscope.outputs
}
