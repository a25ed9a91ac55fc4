"""The same training steps, tuned by hand: what does not depend on the step before is computed once for
all steps (U h, the readout), the output projection on real tokens only, Adam over lists of tensors."""
from train_torch_rnn import main

main(tuned=True)
